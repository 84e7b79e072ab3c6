#!/usr/bin/env python3
"""Writes the images of the data tests and what Pillow makes of them.

    /usr/bin/python3 tools/goldens/images.py [OUTPUT_DIRECTORY]

Needs Debian's python3-pil and python3-numpy. The directory gets one file an image and golden.safetensors:

    decode/FILE                    uint8 [h, w, 3], open(FILE).convert("RGB")
    resize/SOURCE/HxW/FILTER       uint8 [h, w, 3], Image.resize
    crop/SOURCE/RESIZE/HxW/FILTER  uint8 [h, w, 3], torchvision's Resize(RESIZE) and CenterCrop((h, w))
    squash/SOURCE/RESIZE/HxW/...   the same with Resize((RESIZE, RESIZE))
    source/NAME                    uint8 [h, w, 3], what is resized

torchvision is not needed: crop_after_resize() has its rules for sizes and offsets, written by hand.
"""
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
import PIL
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def picture(height, width, channels, seed, most=255):
    """Gradients, an edge and some noise: something for every part of a filter."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        wave = np.sin((c + 1) * x / max(width, 2) * 4) + np.cos((c + 2) * y / max(height, 2) * 3)
        edge = 1.0 * ((x * height + y * width * (c + 1)) % (height * width + 1) > height * width / 2)
        planes.append(0.15 * wave + 0.5 * edge + 0.3 + 0.1 * random.standard_normal((height, width)))
    return (np.clip(np.stack(planes, -1), 0, 1) * most).round().astype(np.uint16)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed_rows(values, depth):
    """Rows of samples [h, w * channels] as PNG stores them, each behind a filter byte of 0."""
    rows = b""
    for row in values:
        if depth == 16:
            data = row.astype(">u2").tobytes()
        elif depth == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(f"{value:0{depth}b}" for value in row)
            bits += "0" * (-len(bits) % 8)
            data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        rows += b"\0" + data
    return rows


def png(values, depth, color, palette=None, transparency=None, interlaced=False):
    """A PNG by hand: Pillow cannot write most of these. values: [h, w, channels]."""
    height, width = values.shape[:2]
    if interlaced:
        rows = b""
        for top, left, down, right in ADAM7:
            part = values[top::down, left::right]
            if part.size:
                rows += packed_rows(part.reshape(len(part), -1), depth)
    else:
        rows = packed_rows(values.reshape(height, -1), depth)
    data = b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced)))
    if palette is not None:
        data += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparency is not None:
        data += chunk(b"tRNS", transparency)
    return data + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def jpegs():
    rgb = Image.fromarray(picture(21, 31, 3, 1).astype(np.uint8))
    grey = Image.fromarray(picture(17, 13, 1, 2)[..., 0].astype(np.uint8))
    cmyk = saved(Image.fromarray(picture(19, 23, 4, 3).astype(np.uint8), "CMYK"), format="JPEG", quality=90)
    # The last byte of Adobe's marker is the transform: 2 makes the same data YCCK.
    end = cmyk.index(b"Adobe") + 12
    return {
        "rgb_420.jpg": saved(rgb, format="JPEG", quality=85),
        "rgb_444.jpg": saved(rgb, format="JPEG", quality=95, subsampling=0),
        "progressive.jpg": saved(rgb, format="JPEG", quality=80, progressive=True),
        "grey.jpg": saved(grey, format="JPEG", quality=85),
        "cmyk.jpg": cmyk,
        "ycck.jpg": cmyk[:end - 1] + b"\2" + cmyk[end:],
        "one.jpg": saved(Image.new("RGB", (1, 1), (200, 30, 90)), format="JPEG"),
        "wide.jpg": saved(Image.fromarray(picture(3, 150, 3, 4).astype(np.uint8)), format="JPEG"),
    }


def pngs():
    files = {}
    for depth in (1, 2, 4, 8, 16):
        files[f"grey{depth}.png"] = png(picture(9, 11, 1, depth, 2 ** depth - 1), depth, 0)
    dark = picture(9, 11, 1, 5, 400)  # around where 16 bits of grey are cut
    files["grey16_dark.png"] = png(dark, 16, 0)
    for depth in (8, 16):
        most = 2 ** depth - 1
        files[f"rgb{depth}.png"] = png(picture(9, 11, 3, 20 + depth, most), depth, 2)
        files[f"grey_alpha{depth}.png"] = png(picture(9, 11, 2, 30 + depth, most), depth, 4)
        files[f"rgba{depth}.png"] = png(picture(9, 11, 4, 40 + depth, most), depth, 6)
    colors = np.random.default_rng(6).integers(0, 256, (256, 3))
    for depth in (1, 2, 4, 8):
        count = 2 ** depth
        files[f"palette{depth}.png"] = png(picture(9, 11, 1, 50 + depth, count - 1), depth, 3, colors[:count])
    files["palette_alpha.png"] = png(picture(9, 11, 1, 60, 15), 4, 3, colors[:16], bytes(range(0, 160, 10)))
    files["palette_short.png"] = png(picture(9, 11, 1, 61, 15), 4, 3, colors[:9])
    files["rgb_key.png"] = png(picture(9, 11, 3, 62), 8, 2, transparency=struct.pack(">HHH", 255, 255, 255))
    files["grey_key.png"] = png(picture(9, 11, 1, 63), 8, 0, transparency=struct.pack(">H", 255))
    files["interlaced.png"] = png(picture(13, 10, 3, 64), 8, 2, interlaced=True)
    files["interlaced_palette.png"] = png(picture(13, 10, 1, 65, 15), 4, 3, colors[:16], interlaced=True)
    files["interlaced_grey16.png"] = png(picture(13, 10, 1, 66, 400), 16, 0, interlaced=True)
    files["one.png"] = png(picture(1, 1, 3, 67), 8, 2)
    filtered = Image.fromarray(picture(14, 15, 3, 68).astype(np.uint8))
    files["filtered.png"] = saved(filtered, format="PNG", optimize=True)
    return files


def plain(magic, values, most=None):
    height, width = values.shape[:2]
    lines = [magic, "# a comment", f"{width} {height}"] + ([str(most)] if most else [])
    return ("\n".join(lines + [" ".join(map(str, row.reshape(-1))) for row in values]) + "\n").encode()


def binary(magic, values, most, dtype):
    height, width = values.shape[:2]
    return f"{magic}\n{width} # wide\n{height}\n{most}\n".encode() + values.astype(dtype).tobytes()


def pnms():
    bits = picture(7, 11, 1, 70, 1)
    return {
        "p1.pbm": plain("P1", bits),
        "p1_tight.pbm": b"P1 3 2\n011#x\n10 1",
        "p2.pgm": plain("P2", picture(5, 6, 1, 71), 255),
        "p2_200.pgm": plain("P2", picture(5, 6, 1, 72, 200), 200),
        "p2_deep.pgm": plain("P2", picture(5, 6, 1, 73, 9), 1000),
        "p3.ppm": plain("P3", picture(5, 6, 3, 74), 255),
        "p3_7.ppm": plain("P3", picture(5, 6, 3, 75, 7), 7),
        "p4.pbm": saved(Image.fromarray(bits[..., 0] == 0), format="PPM"),
        "p5.pgm": binary("P5", picture(5, 6, 1, 76), 255, np.uint8),
        "p5_100.pgm": binary("P5", picture(5, 6, 1, 77, 100), 100, np.uint8),
        "p5_deep.pgm": binary("P5", picture(5, 6, 1, 78, 400), 65535, ">u2"),
        "p6.ppm": binary("P6", picture(5, 6, 3, 79), 255, np.uint8),
        "p6_deep.ppm": binary("P6", picture(5, 6, 3, 80, 1000), 1000, ">u2"),
        "p6_31.ppm": binary("P6", picture(5, 6, 3, 81, 31), 31, np.uint8),
    }


def sources():
    checks = np.indices((24, 24)).sum(0) % 2 * 255
    return {"photo": picture(37, 53, 3, 90), "tall": picture(61, 2, 3, 91), "wide": picture(3, 150, 3, 92),
            "one": picture(1, 1, 3, 93), "checks": checks[..., None].repeat(3, 2)}


RESIZES = {"photo": [(37, 53), (45, 59), (11, 17), (1, 1), (37, 20), (19, 53), (3, 90)],
           "tall": [(8, 16), (61, 1), (70, 3)], "wide": [(20, 20), (2, 30)], "one": [(5, 7)],
           "checks": [(17, 13), (31, 29), (5, 23)]}


def crop_after_resize(resized, height, width):
    """torchvision's CenterCrop of what Resize gave, by hand."""
    pad_x, pad_y = max(width - resized.width, 0), max(height - resized.height, 0)
    if pad_x or pad_y:
        left, top = pad_x // 2, pad_y // 2
        padded = Image.new("RGB", (resized.width + pad_x, resized.height + pad_y))
        padded.paste(resized, (left, top))
        resized = padded
    top = int(round((resized.height - height) / 2.0))
    left = int(round((resized.width - width) / 2.0))
    return resized.crop((left, top, left + width, top + height))


def shorter_side(image, size, method):
    """torchvision's Resize with one number, by hand."""
    short, long = sorted(image.size)
    long = int(size * long / short)
    shape = (size, long) if image.width <= image.height else (long, size)
    return image if image.size == shape else image.resize(shape, method)


# Source, resize, height and width of the crop. The differences of the sides are of every remainder by 4.
CROPS = [("photo", 16, 16, 16), ("photo", 18, 16, 16), ("photo", 19, 16, 16), ("photo", 17, 16, 14),
         ("photo", 20, 13, 17), ("photo", 40, 16, 16), ("photo", 37, 16, 16), ("photo", 9, 12, 12),
         ("tall", 16, 16, 16), ("tall", 1, 9, 4), ("wide", 16, 16, 16), ("one", 8, 8, 8)]
SQUASHES = [("photo", 16, 16, 16), ("photo", 18, 16, 16), ("tall", 12, 12, 12), ("wide", 12, 12, 12)]


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"pillow": PIL.__version__}}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        place = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "U8", "shape": array.shape, "data_offsets": place}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/fixtures/data/images"
    out.mkdir(parents=True, exist_ok=True)
    golden = {}
    for name, data in (jpegs() | pngs() | pnms()).items():
        (out / name).write_bytes(data)
        golden["decode/" + name] = np.asarray(Image.open(out / name).convert("RGB"))
    images = {}
    for name, pixels in sources().items():
        golden["source/" + name] = pixels.astype(np.uint8)
        images[name] = Image.fromarray(golden["source/" + name])
    for method, code in FILTERS.items():
        for name, shapes in RESIZES.items():
            for height, width in shapes:
                pixels = np.asarray(images[name].resize((width, height), code))
                golden[f"resize/{name}/{height}x{width}/{method}"] = pixels
        for name, size, height, width in CROPS:
            resized = shorter_side(images[name], size, code)
            pixels = np.asarray(crop_after_resize(resized, height, width))
            golden[f"crop/{name}/{size}/{height}x{width}/{method}"] = pixels
        for name, size, height, width in SQUASHES:
            resized = images[name].resize((size, size), code)
            pixels = np.asarray(crop_after_resize(resized, height, width))
            golden[f"squash/{name}/{size}/{height}x{width}/{method}"] = pixels
    write_safetensors(out / "golden.safetensors", golden)


if __name__ == "__main__":
    main()
