"""One head's pass of a spec, from its source on: what the tests of the stages run."""

import torch

from attnviz.attention.multihead import SplitHeads, StackedHeads
from attnviz.attention.stages import head_stages
from attnviz.inputs import open_source
from attnviz.spec import JOINT_STAGES, has_module, stages_of


def given_to(spec, head=0):
    """What `head_stages` takes for one head of ``spec``, and the module if there is one."""
    inputs, dtype = open_source(spec), getattr(torch, spec.dtype)
    if has_module(spec.source):
        form = StackedHeads if spec.implementation == "stacked" else SplitHeads
        module = form(
            spec.d_model, spec.d_out, spec.num_heads, context_length=len(inputs.tokens), qkv_bias=spec.qkv_bias,
            out_proj=spec.out_proj, seed=spec.seed,
        ).to(dtype)  # fmt: skip
        q, k, v = module.project(inputs.embeddings.to(dtype).expand(spec.batch, -1, -1))
        return {"q": q[:, head], "k": k[:, head], "v": v[:, head]}, module
    if inputs.queries is not None:
        return {"q": inputs.queries[head, None].to(dtype), "k": inputs.keys[head, None].to(dtype)}, None
    typed = {"scaled_scores": inputs.scaled_scores, "weights": inputs.weights, "v": inputs.values}
    return {name: t.to(dtype)[None] for name, t in typed.items() if t is not None}, None


def head_names(spec):
    return [name for name in stages_of(spec) if name not in JOINT_STAGES]


def computed(spec, head=0, keep=None, **more):
    with torch.inference_mode():
        given, _ = given_to(spec, head)
        return head_stages(spec, head=head, keep=set(head_names(spec)) if keep is None else keep, **given, **more)


def stage(spec, name, head=0):
    return computed(spec, head, {name}).stages[name][0]


def output(spec):
    with torch.inference_mode():
        contexts = [computed(spec, head, {"context"}).stages["context"] for head in range(spec.num_heads)]
        return given_to(spec)[1].join(torch.stack(contexts, 1))[1]
