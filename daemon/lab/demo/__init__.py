"""`dasec demo`: the main job on this machine, default and policies interleaved."""
