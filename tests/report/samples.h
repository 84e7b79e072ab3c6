#pragma once

#include <string>

// Small documents as the commands write them.
namespace theseus::report {

inline const std::string kTransportSample = R"({
  "theseus": "0.1.0",
  "options": {"command": "transport", "threads": "1"},
  "source": {"path": "/m/base", "family": "timm_vit", "fingerprint": "xxh3:11"},
  "tuned": {"path": "/m/tuned", "kind": "dense", "fingerprint": "xxh3:22"},
  "target": {"path": "/m/wide", "family": "timm_vit", "fingerprint": "xxh3:33"},
  "examples": {"path": "/m/images.safetensors", "sequences": 16},
  "method": "procrustes", "alpha": 0.75, "write": "model",
  "depth": {"mode": "divided",
            "source_blocks": [{"run_as": 0, "parts": [[0, 1.0]]},
                              {"run_as": 1, "parts": [[0, 0.25], [1, 0.75]]}],
            "pairs": [{"source": 0, "target": 0, "share": 1.0},
                      {"source": 1, "target": 1, "share": 0.5}],
            "similarity": [[0.9, 0.2], [0.1, 0.8]]},
  "parameters": [
    {"parameter": "cls_token", "action": "kept", "reason": "an embedding"},
    {"parameter": "blocks.0.fc.weight", "action": "carried", "reason": "visual.0.a x visual.0.b",
     "source_norm": 2.0, "target_norm": 1.5, "norm_error": -0.5, "rounding_loss": 0.001},
    {"parameter": "blocks.1.fc.weight", "action": "carried", "reason": "visual.1.a x visual.1.b",
     "source_norm": 4.0, "target_norm": 4.125, "norm_error": 0.125}],
  "totals": {"carried": 2, "kept": 1},
  "update": {"norm": 4.472, "carried_norm": 4.183, "left_behind_share": 0.125,
             "left_behind": [{"parameter": "head.weight", "norm": 1.5, "reason": "other classes"}]},
  "rounding_loss": 0.002,
  "spaces": [
    {"stage": 1, "space": "visual.0.a", "source_width": 48, "target_width": 96, "rank": 48,
     "completed": 0, "route": "eigh", "orthogonality": 3e-8, "asymmetry": 1e-13, "condition": 1234},
    {"stage": 2, "space": "visual.1.a", "source_width": 48, "target_width": 96, "rank": 12,
     "completed": 36, "route": "svd", "orthogonality": 3e-8, "asymmetry": 1e-12},
    {"stage": 3, "space": "visual.final", "source_width": 48, "target_width": 96, "rank": 48,
     "completed": 0, "route": "eigh"}],
  "notes": ["visual.*.a: 12 of 48 directions"]
})";

inline const std::string kImitationSample = R"({
  "theseus": "0.1.0",
  "options": {"command": "imitate"},
  "source": {"path": "/m/base"}, "tuned": {"path": "/m/tuned"}, "target": {"path": "/m/wide"},
  "examples": {"path": "/m/noisy.safetensors", "sequences": 96},
  "familiar": {"path": "/m/plain.safetensors", "sequences": 64},
  "method": "imitate", "alpha": 1.0, "write": "model",
  "layers": [
    {"module": "blocks.0.attn.proj", "source_block": 0, "wanted": 0.125, "share": 0.5},
    {"module": "blocks.0.mlp.fc2", "source_block": 0, "wanted": 0.25, "share": 0.75},
    {"module": "blocks.1.attn.proj", "source_block": 0, "wanted": 0.25, "share": 0.625},
    {"module": "blocks.1.mlp.fc2", "source_block": 0, "wanted": 0.5, "share": 0.7}],
  "notes": []
})";

inline const std::string kSweepSample = R"({
  "kind": "sweep", "metric": "accuracy",
  "curve": [{"alpha": 1.0, "value": 0.58, "low": 0.56, "high": 0.6},
            {"alpha": 0.0, "value": 0.5, "low": 0.48, "high": 0.52},
            {"alpha": 0.5, "value": 0.6125, "low": 0.59, "high": 0.63}],
  "best": {"alpha": 0.5, "value": 0.6125}, "base": {"value": 0.5},
  "notes": []
})";

inline const std::string kCompareSample = R"({
  "kind": "compare", "columns": ["EuroSAT", "DTD"],
  "rows": [
    {"method": "naive", "shots": 10, "cells": {"EuroSAT": {"value": 0.5, "low": 0.4, "high": 0.6}}},
    {"method": "procrustes", "shots": 10,
     "cells": {"EuroSAT": {"value": 0.75, "alpha": 0.5}, "DTD": {"value": 0.25}}}]
})";

inline const std::string kEvaluateSample = R"({
  "kind": "evaluate", "model": "/m/out/model.safetensors", "data": "/d/eurosat", "split": "test",
  "task": "zero_shot", "metric": "accuracy", "value": 0.7132, "low": 0.6987, "high": 0.7273,
  "count": 2700, "notes": ["<script>alert(1)</script>"]
})";

inline const std::string kDiagnoseSample = R"({
  "kind": "diagnose", "verdict": "likely", "reasons": ["enough rank"],
  "spaces": [{"space": "visual.0.q", "stage": 1, "before": 0.125, "after": 0.875, "rank": 3, "of": 4,
              "condition": 100, "energy": 0.99},
             {"space": "visual.1.q", "stage": 2, "before": -0.25, "after": 0.625, "rank": 4, "of": 4}],
  "distance": 1.5
})";

// Two trainings on the same held-out examples; the second starts from an update.
inline const std::string kFinetuneSample = R"({
  "theseus": "0.1.0", "kind": "finetune",
  "model": {"path": "/m/wide"}, "data": {"data": "/d/digits", "examples": 90},
  "held_out": {"data": "/d/digits", "examples": 10, "hash": "xxh3:1"},
  "steps": 30, "batch_size": 16, "metric": "accuracy",
  "curve": [{"step": 0, "value": 0.1, "loss": 2.3}, {"step": 10, "value": 0.5, "loss": 1.5},
            {"step": 20, "value": 0.9, "loss": 0.5}, {"step": 30, "value": 0.8, "loss": 0.6}],
  "losses": [{"step": 10, "value": 1.6}, {"step": 20, "value": 0.7}, {"step": 30, "value": 0.4}],
  "best": {"step": 20, "value": 0.9}, "notes": []
})";
inline const std::string kWarmSample = R"({
  "theseus": "0.1.0", "kind": "finetune", "start_from": "/runs/carried", "alpha": 0.5,
  "model": {"path": "/m/wide"}, "data": {"data": "/d/digits", "examples": 90},
  "held_out": {"data": "/d/digits", "examples": 10, "hash": "xxh3:1"},
  "steps": 30, "batch_size": 16, "metric": "accuracy",
  "curve": [{"step": 0, "value": 0.6, "loss": 1.2}, {"step": 10, "value": 0.95, "loss": 0.3}],
  "losses": [{"step": 10, "value": 0.8}],
  "best": {"step": 10, "value": 0.95}
})";

}  // namespace theseus::report
