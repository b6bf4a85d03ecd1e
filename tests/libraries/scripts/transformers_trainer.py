"""A classifier trained by Trainer, evaluated, saved and gone on with."""

import tempfile

import torch
from seeding import fill
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

print("imported")


class Words(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, at):
        ids = torch.arange(8) * (at + 3) % 61 + 1
        return {"input_ids": ids, "attention_mask": torch.ones(8, dtype=torch.long), "labels": at % 2}


def measures(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


class Losses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        print(
            state.global_step,
            *(f"{name} {logs[name]:.4f}" for name in ("loss", "grad_norm", "learning_rate") if name in logs),
            flush=True,
        )


config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    for options in (
        {},
        {"gradient_accumulation_steps": 2},
        {"gradient_checkpointing": True},
        {"optim": "sgd"},
        {"optim": "adafactor"},
    ):
        model = BertForSequenceClassification(config)
        fill(model)
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=4, max_steps=4, logging_steps=1, learning_rate=1e-3, report_to=[],
            save_steps=2, disable_tqdm=True, use_cpu=True, train_sampling_strategy="sequential", **options,
        )  # fmt: skip
        trainer = Trainer(
            model,
            arguments,
            train_dataset=Words(),
            eval_dataset=Words(),
            compute_metrics=measures,
            callbacks=[Losses()],
        )
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
        print(options, f"{result.training_loss:.4f}", flush=True)
        scores = trainer.evaluate()
        print(f"{scores['eval_loss']:.4f}", f"{scores['eval_accuracy']:.3f}", flush=True)
    trainer.args.max_steps = 6
    result = trainer.train(resume_from_checkpoint=True)
    print("resumed", result.global_step)
    trainer.save_model(f"{folder}/end")
    again = BertForSequenceClassification.from_pretrained(f"{folder}/end")
    print(torch.equal(again.classifier.weight, trainer.model.classifier.weight))
