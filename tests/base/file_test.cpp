#include "theseus/base/file.h"

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "theseus/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus {
namespace {

namespace fs = std::filesystem;
using tests::error_of;
using tests::read_bytes;
using tests::ScratchDir;
using tests::write_bytes;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

// Runs `body` in a child process, because it changes limits or ends the process, and returns its
// exit status.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MappedFile, ShowsTheBytes) {
  const ScratchDir directory;
  const std::string text("a\0b\n", 4);
  write_bytes(directory / "x", text);
  const MappedFile file(directory / "x");
  EXPECT_EQ(file.path(), directory / "x");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), 4), text);
  EXPECT_EQ(file.bytes().size(), 4U);
}

TEST(MappedFile, KeepsTheBytesOfAReplacedFile) {
  const ScratchDir directory;
  write_bytes(directory / "x", "first");
  const MappedFile file(directory / "x");
  AtomicFile next(directory / "x");
  next.append("second");
  next.commit();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), 5), "first");
  EXPECT_EQ(read_bytes(directory / "x"), "second");
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const ScratchDir directory;
  write_bytes(directory / "x", "");
  EXPECT_TRUE(MappedFile(directory / "x").bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const ScratchDir directory;
  const auto missing = directory / "none";
  EXPECT_EQ(
      error_of([&] { MappedFile file(missing); }),
      "cannot open " + missing.string() + ": No such file or directory");
  EXPECT_EQ(
      error_of([&] { MappedFile file(directory.path()); }),
      directory.path().string() + " is a directory, not a file");
  const auto pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { MappedFile file(pipe); }), pipe.string() + " is not a regular file");
  EXPECT_EQ(error_of([&] { MappedFile file("/dev/null"); }), "/dev/null is not a regular file");
  fs::create_symlink(directory / "none", directory / "dangling");
  EXPECT_THROW(MappedFile(directory / "dangling"), InputError);
}

TEST(MappedFile, WithoutTheRightToRead) {
  const ScratchDir directory;
  write_bytes(directory / "x", "secret");
  fs::permissions(directory / "x", fs::perms::none);
  fs::permissions(directory.path(), fs::perms::all);
  const int status = status_of_child([&] {
    // Root may read everything, so the child stops being root.
    if (::geteuid() == 0 && ::setuid(65534) != 0) {
      return 1;
    }
    const auto message = error_of([&] { MappedFile file(directory / "x"); });
    return message.ends_with("x: Permission denied") ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(AtomicFile, PiecesMayComeInAnyOrder) {
  const ScratchDir directory;
  AtomicFile file(directory / "x", 9);
  file.write_at(6, "ghi", 3);
  file.write_at(0, "abc", 3);
  file.write_at(3, "def", 3);
  EXPECT_FALSE(fs::exists(directory / "x"));
  file.commit();
  EXPECT_EQ(read_bytes(directory / "x"), "abcdefghi");
}

TEST(AtomicFile, CanAppearBeforeTheDiskHasIt) {
  const ScratchDir directory;
  AtomicFile file(directory / "x");
  file.append("abc");
  file.commit_unsynced();
  EXPECT_EQ(read_bytes(directory / "x"), "abc");
  sync_file(directory / "x");
  EXPECT_EQ(
      error_of([&] { sync_file(directory / "none"); }),
      "cannot store " + (directory / "none").string() + ": No such file or directory");
  AtomicFile reserved(directory / "y", 3);
  reserved.append("abc");
  EXPECT_THROW(reserved.commit_unsynced(), InternalError);
}

TEST(ReadTextFile, ReadsUpToItsLimit) {
  const ScratchDir directory;
  write_bytes(directory / "x", "12345");
  EXPECT_EQ(read_text_file(directory / "x", 5), "12345");
  EXPECT_EQ(
      error_of([&] { read_text_file(directory / "x", 4); }),
      (directory / "x").string() + " is 5 bytes; at most 4 are read");
  write_bytes(directory / "empty", "");
  EXPECT_EQ(read_text_file(directory / "empty", 0), "");
}

TEST(AtomicFile, AppearsWhole) {
  const ScratchDir directory;
  AtomicFile file(directory / "x");
  file.append("one ");
  file.append("two");
  file.append("");
  EXPECT_FALSE(fs::exists(directory / "x"));
  EXPECT_EQ(names_in(directory.path()).size(), 1U);
  file.commit();
  EXPECT_EQ(read_bytes(directory / "x"), "one two");
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"x"});
}

TEST(AtomicFile, SyncedIsNotYetThere) {
  const ScratchDir directory;
  {
    AtomicFile file(directory / "x", 100);
    file.append("half");
    file.sync();
    EXPECT_FALSE(fs::exists(directory / "x"));
  }
  EXPECT_TRUE(names_in(directory.path()).empty());
  AtomicFile file(directory / "x", 100);
  file.append("one ");
  file.sync();
  file.append("two");
  file.commit();
  EXPECT_EQ(read_bytes(directory / "x"), "one two");
  EXPECT_THROW(file.sync(), InternalError);
}

TEST(AtomicFile, HasOrdinaryPermissions) {
  const ScratchDir directory;
  const mode_t mask = ::umask(0022);
  AtomicFile file(directory / "x");
  file.commit();
  ::umask(mask);
  EXPECT_EQ(static_cast<int>(fs::status(directory / "x").permissions()), 0644);
}

TEST(AtomicFile, ReplacesOnlyAtCommit) {
  const ScratchDir directory;
  write_bytes(directory / "x", "first");
  AtomicFile file(directory / "x");
  file.append("second");
  EXPECT_EQ(read_bytes(directory / "x"), "first");
  file.commit();
  EXPECT_EQ(read_bytes(directory / "x"), "second");
}

TEST(AtomicFile, AbandonedLeavesNothing) {
  const ScratchDir directory;
  write_bytes(directory / "x", "first");
  { AtomicFile(directory / "x", 1000).append("half"); }
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"x"});
  EXPECT_EQ(read_bytes(directory / "x"), "first");
}

TEST(AtomicFile, TwoOnTheWayToOneNameDoNotMix) {
  const ScratchDir directory;
  AtomicFile first(directory / "x");
  auto second = std::make_unique<AtomicFile>(directory / "x");
  first.append("first");
  second->append("second one");
  first.commit();
  EXPECT_EQ(read_bytes(directory / "x"), "first");
  second.reset();
  EXPECT_EQ(read_bytes(directory / "x"), "first");
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"x"});
}

TEST(AtomicFile, EndsWhereTheLastAppendDid) {
  const ScratchDir directory;
  AtomicFile shorter(directory / "shorter", 4096);
  shorter.append("abc");
  shorter.commit();
  EXPECT_EQ(read_bytes(directory / "shorter"), "abc");
  AtomicFile longer(directory / "longer", 2);
  longer.append("abc");
  longer.commit();
  EXPECT_EQ(read_bytes(directory / "longer"), "abc");
}

TEST(AtomicFile, RelativeNamesWork) {
  const ScratchDir directory;
  const int status = status_of_child([&] {
    fs::current_path(directory.path());
    AtomicFile file("x");
    file.append("here");
    file.commit();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(directory / "x"), "here");
}

TEST(AtomicFile, UseAfterCommitIsOurBug) {
  const ScratchDir directory;
  AtomicFile file(directory / "x");
  file.commit();
  EXPECT_THROW(file.append("more"), InternalError);
  EXPECT_THROW(file.commit(), InternalError);
}

TEST(AtomicFile, SaysAtOnceThatThePlaceIsWrong) {
  const ScratchDir directory;
  const auto lost = directory / "none" / "x";
  EXPECT_EQ(
      error_of([&] { AtomicFile file(lost); }),
      "cannot write " + lost.string() + ": No such file or directory");
  const auto& self = directory.path();
  EXPECT_EQ(
      error_of([&] { AtomicFile file(self); }),
      "cannot write " + self.string() + ": it is a directory");
  EXPECT_THROW(AtomicFile(self / ""), InputError);
  EXPECT_TRUE(names_in(self).empty());
}

TEST(AtomicFile, ADirectoryThatTookTheNameMeanwhile) {
  const ScratchDir directory;
  const auto path = directory / "x";
  {
    AtomicFile file(path);
    fs::create_directory(path);
    EXPECT_EQ(
        error_of([&] { file.commit(); }), "cannot create " + path.string() + ": Is a directory");
  }
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"x"});
}

TEST(AtomicFile, WithoutTheRightToWrite) {
  const ScratchDir directory;
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const int status = status_of_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) {
      return 1;
    }
    const auto message = error_of([&] { AtomicFile file(directory / "x"); });
    return message.ends_with("x: Permission denied") ? 0 : 2;
  });
  fs::permissions(directory.path(), fs::perms::owner_all);
  EXPECT_EQ(status, 0);
}

// A file size limit stands in for a full disk: both end a write short.
int limit_file_size(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {bytes, bytes};
  return ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(AtomicFile, AFullDiskWhileWriting) {
  const ScratchDir directory;
  const int status = status_of_child([&] {
    if (limit_file_size(1000) != 0) {
      return 1;
    }
    const auto message = error_of([&] {
      AtomicFile file(directory / "x");
      file.append(std::string(600, 'x'));
      file.append(std::string(600, 'x'));
    });
    return message.ends_with("x: File too large") ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(names_in(directory.path()).empty());
}

TEST(AtomicFile, AFullDiskShowsBeforeTheWork) {
  const ScratchDir directory;
  const int status = status_of_child([&] {
    if (limit_file_size(1000) != 0) {
      return 1;
    }
    const auto message = error_of([&] { AtomicFile file(directory / "x", 5000); });
    return message.ends_with("x (5000 bytes): File too large") ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(names_in(directory.path()).empty());
}

TEST(AtomicFile, MoreBytesThanAnyDiskHas) {
  const ScratchDir directory;
  const int64_t exabytes = int64_t{4} << 60;
  EXPECT_THROW(AtomicFile(directory / "x", exabytes), InputError);
  EXPECT_TRUE(names_in(directory.path()).empty());
}

TEST(RemoveUnfinishedFiles, LeavesOnlyWhatWasCommitted) {
  const ScratchDir directory;
  const int status = status_of_child([&] {
    std::signal(SIGINT, [](int) {
      remove_unfinished_files();
      ::_exit(7);
    });
    AtomicFile done(directory / "done");
    done.append("whole");
    done.commit();
    AtomicFile first(directory / "first", 100);
    AtomicFile second(directory / "second");
    second.append("half");
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"done"});
}

TEST(RemoveUnfinishedFiles, ForgetsFilesThatAreGone) {
  const ScratchDir directory;
  // More files, one after the other, than could ever be open at once.
  for (int i = 0; i < 1100; ++i) {
    AtomicFile file(directory / "x");
  }
  const int status = status_of_child([&] {
    AtomicFile file(directory / "x");
    remove_unfinished_files();
    ::_exit(names_in(directory.path()).empty() ? 0 : 1);
    return 2;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace theseus
