"""TableOptimizer: optimizer steps inside the tables of embedding layers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tensorhash.optim import Optimizer, require_optimizer
from tensorhash.torch.embedding.layer import HashLayer
from tensorhash.torch.embedding.table_rows import TableRows


class TableOptimizer(torch.optim.Optimizer):
    """Trains the rows of embedding layers by an optimizer of tensorhash.optim, in their tables.

    `modules` is a model or several; layers with `capacity=` have a parameter and are left to
    torch.optim. It has one parameter group per layer, with the optimizer's settings, so that
    schedulers of torch.optim.lr_scheduler and torch.amp.GradScaler work with it. Before a step, the
    gradients of equal ids are summed. Then each number is clipped to `clip_value`, and all of them
    are scaled so that their norm over all layers is at most `clip_norm`.

    >>> from tensorhash.torch import HashEmbedding
    >>> layer = HashEmbedding(1, init="zeros")
    >>> optimizer = TableOptimizer(layer, tensorhash.optim.SGD(lr=0.5))
    >>> layer(torch.tensor([7, 9, 7])).sum().backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
    >>> layer(torch.tensor([7, 9])).tolist()
    [[-1.0], [-0.5]]
    """

    def __init__(
        self,
        modules: torch.nn.Module | Iterable[torch.nn.Module],
        optimizer: Optimizer,
        *,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        require_optimizer(optimizer)
        for name, value in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}: expected more than 0, got {value}")
        given = [modules] if isinstance(modules, torch.nn.Module) else list(modules)
        found = (one for module in given for one in module.modules() if isinstance(one, HashLayer))
        rows = [one._rows for one in dict.fromkeys(found) if isinstance(one._rows, TableRows)]
        if not rows:
            raise ValueError(
                "modules: expected a model with an embedding layer of tensorhash.torch that has "
                "no capacity=, got none"
            )
        for one in rows:
            one.attach(optimizer)
        self._tables = rows
        self._optimizer = copy.copy(optimizer)
        self._clip_norm = clip_norm
        self._clip_value = clip_value
        placeholders = [torch.zeros(0, requires_grad=True) for _ in rows]
        groups: Any = [{"params": [one], **vars(optimizer)} for one in placeholders]
        super().__init__(groups, {})
        for group, one in zip(self.param_groups, rows, strict=True):
            group["params"] = one.leaves

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Makes one step of each id that has a gradient. Over ranks, collective."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            given = [one.gradients() for one in self._tables]
            given = self._clipped(given)
            for table, group, (ids, rows) in zip(
                self._tables, self.param_groups, given, strict=True
            ):
                table.step(ids, rows, self._settings(group))
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, and with them the rows that wait for a step."""
        for table in self._tables:
            table.forget_gradients()

    def _settings(self, group: dict[str, Any]) -> Optimizer:
        """The optimizer with the group's settings, which a scheduler may have changed."""
        optimizer = copy.copy(self._optimizer)
        for name in vars(optimizer):
            value = group[name]
            setattr(optimizer, name, float(value) if isinstance(value, torch.Tensor) else value)
        return optimizer

    def _clipped(
        self, given: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        if self._clip_value is not None:
            limit = self._clip_value
            given = [(ids, rows.clamp(-limit, limit)) for ids, rows in given]
        if self._clip_norm is None:
            return given
        squares = sum(
            table.total(float(rows.double().square().sum()))
            for table, (_, rows) in zip(self._tables, given, strict=True)
        )
        scale = min(1.0, self._clip_norm / (math.sqrt(squares) + 1e-6))
        return [(ids, rows * scale) for ids, rows in given]

    def state_dict(self) -> dict[str, object]:
        """The settings of each layer's group. The optimizer's state is in the layers' tables."""
        groups = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self.param_groups
        ]
        return {"optimizer": type(self._optimizer).__name__, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the settings of a `state_dict()`; load the layers' own state_dict as well."""
        name, groups = state_dict["optimizer"], state_dict["groups"]
        wanted = type(self._optimizer).__name__
        if name != wanted or len(groups) != len(self.param_groups):
            raise ValueError(
                f"state_dict: expected {wanted} with {len(self.param_groups)} groups, "
                f"got {name} with {len(groups)}"
            )
        for group, values in zip(self.param_groups, groups, strict=True):
            group.update(values)
