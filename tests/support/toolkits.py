"""An environment with the newest PaddlePaddle and PaddleFormers, kept in the cache; .venv has an older PaddlePaddle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.interpreters import cached_python

LOCK = Path(__file__).with_suffix(".lock")
TINY = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 320,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "eos_token_id": 0,
    "fuse_rms_norm": False,  # the fused kernel needs a GPU
}
TRAINING = {
    "stage": "SFT",
    "model_name_or_path": "tiny",
    "continue_training": False,
    "_attn_implementation": "eager",
    "train_dataset_type": "erniekit",
    "train_dataset_path": "train.jsonl",
    "train_dataset_prob": "1.0",
    "eval_dataset_type": "erniekit",
    "eval_dataset_path": "train.jsonl",
    "eval_dataset_prob": "1.0",
    "max_seq_len": 32,
    "use_template": False,
    "device": "cpu",
    "output_dir": "out",
    "do_train": True,
    "do_eval": False,
    "sharding": "",  # the default, stage1, needs a GPU
    "max_steps": 2,
    "per_device_train_batch_size": 1,
    "logging_steps": 1,
    "autotuner_benchmark": True,  # does not save the model, which needs a GPU
}
TOKENIZER = """
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
made.train_from_iterator(["one"], trainers.BpeTrainer(special_tokens=["<|end|>"], initial_alphabet=alphabet))
made.save("tiny/tokenizer.json")
"""


def toolkits_python() -> Path:
    """The interpreter of the environment, which is downloaded (1 GB) the first time."""
    return cached_python("toolkits", LOCK)


def write_tiny_model(python: Path, folder: Path) -> None:
    """A language model of a few thousand parameters, its data and train.yaml, made without any download."""
    model = folder / "tiny"
    model.mkdir()
    subprocess.run([python, "-c", TOKENIZER], cwd=folder, check=True)
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "pad_token": "<|end|>"}
    (model / "tokenizer_config.json").write_text(json.dumps(about))
    (model / "config.json").write_text(json.dumps(TINY))
    (folder / "train.jsonl").write_text(json.dumps({"src": ["one two"], "tgt": ["three four"]}) + "\n")
    (folder / "train.yaml").write_text(json.dumps(TRAINING))
