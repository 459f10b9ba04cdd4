"""Convolutions with padding, groups and spconv's output voxels, over two to four axes."""

import itertools

import pytest

pytest.importorskip("torch")

import torch
from dense_oracle import at, dense, rows_of, same_with_gradients, tensor, voxels
from torch.nn import functional as F

from tensorhash.torch import (
    SparseConv2d,
    SparseConv3d,
    SparseConv4d,
    SparseInverseConv3d,
    SparseTensor,
    SubMConv3d,
)

EXTENT = 8


def dense_weight(conv):
    """The weight as torch's dense convolutions take it."""
    weight = conv.weight.reshape(*conv.kernel_size, *conv.weight.shape[1:])
    return weight.movedim(-1, 0).movedim(-1, 1)


@pytest.mark.parametrize("padding", [0, 1, 2, (0, 1, 3)], ids=str)
@pytest.mark.parametrize("kernel", [1, 2, 3, (3, 2, 1)], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_out_sites_reached_are_spconvs_and_equal_a_dense_convolution(
    padding, kernel, stride, dilation
):
    coords = voxels(1)
    layer = SparseConv3d(
        *(2, 4, kernel, stride, dilation), padding=padding, out_sites="reached", groups=2
    ).double()
    features = torch.randn(len(coords), 2, dtype=torch.float64, requires_grad=True)
    x = SparseTensor(features, coords, spatial_shape=EXTENT)
    grid = dense(x, EXTENT)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    ones = torch.ones(1, 1, *layer.kernel_size, dtype=torch.float64)
    occupied = dense(x.with_features(torch.ones_like(features[:, :1])), EXTENT)
    touched = F.conv3d(occupied, ones, **options)
    expected = F.conv3d(grid, dense_weight(layer), layer.bias, groups=2, **options)
    y = layer(x)
    assert rows_of(y.coords) == rows_of(torch.nonzero(touched[:, 0] > 0.5))
    assert y.spatial_shape == tuple(expected.shape[2:])
    same_with_gradients(y.features, at(expected, y.coords), [features, *layer.parameters()])


@pytest.mark.parametrize("padding", [0, 1, (2, 0, 1)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("generative", [False, True])
def test_padding_moves_the_kernel(padding, stride, generative):
    x = tensor(2, low=3, high=9)
    layer = SparseConv3d(3, 2, 3, stride, padding=padding, generative=generative).double()
    y = layer(x)
    grid = F.conv3d(dense(x, 32, low=-8), dense_weight(layer), layer.bias)
    # Out o sees the inputs from o * stride - padding on.
    start = y.coords * torch.tensor([1, *[stride] * 3]) - torch.tensor([0, *layer.padding])
    expected = at(grid, start, low=-8)
    same_with_gradients(y.features, expected, [x.features, *layer.parameters()])


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("kernel", [2, 3])
def test_a_generative_transposed_convolution_with_padding_and_a_shape(padding, kernel):
    coords = voxels(3, high=5)
    features = torch.randn(len(coords), 2, dtype=torch.float64, requires_grad=True)
    x = SparseTensor(features, coords, spatial_shape=5)
    layer = SparseConv3d(
        2, 3, kernel, stride=2, transposed=True, generative=True, padding=padding
    ).double()
    weight = layer.weight.reshape(*layer.kernel_size, 2, 3).permute(3, 4, 0, 1, 2)
    expected = F.conv_transpose3d(dense(x, 5), weight, layer.bias, stride=2, padding=padding)
    y = layer(x)
    assert y.spatial_shape == tuple(expected.shape[2:])
    ones = torch.ones(1, 1, *layer.kernel_size, dtype=torch.float64)
    occupied = dense(x.with_features(torch.ones_like(features[:, :1])), 5)
    reached = F.conv_transpose3d(occupied, ones, stride=2, padding=padding)
    assert rows_of(y.coords) == rows_of(torch.nonzero(reached[:, 0] > 0.5))
    same_with_gradients(y.features, at(expected, y.coords), [features, *layer.parameters()])


@pytest.mark.parametrize("stride", [1, 2])
def test_two_axes_are_conv2d(stride):
    x = tensor(4, channels=4, axes=2)
    layer = SparseConv2d(4, 6, 3, stride, groups=2).double()
    expected = F.conv2d(dense(x, 8), dense_weight(layer), layer.bias, stride, 1, groups=2)
    y = layer(x)
    same_with_gradients(y.features, at(expected, y.coords), [x.features, *layer.parameters()])


def test_four_axes_are_a_sum_of_conv3d():
    x = tensor(5, channels=2, axes=4, count=200, high=5)
    layer = SparseConv4d(2, 3, (3, 3, 3, 3)).double()
    grid, weight = dense(x, 5), dense_weight(layer)
    expected = torch.zeros(2, 3, 5, 5, 5, 5, dtype=torch.float64) + layer.bias.view(-1, *[1] * 4)
    for out, k in itertools.product(range(5), range(3)):
        if 0 <= out + k - 1 < 5:
            part = F.conv3d(grid[:, :, out + k - 1], weight[:, :, k], padding=1)
            index = torch.tensor([out])
            expected = expected.index_add(2, index, part.unsqueeze(2))
    y = layer(x)
    same_with_gradients(y.features, at(expected, y.coords), [x.features, *layer.parameters()])


@pytest.mark.parametrize("kernel", [3, 2, (1, 4, 3)], ids=str)
def test_submconv3d_keeps_voxels_and_centres_as_spconv_does(kernel):
    x = tensor(6, low=4, high=10)
    layer = SubMConv3d(3, 2, kernel, padding=7, indice_key="a").double()
    y = layer(x)
    assert y.coords is x.coords
    grid = F.conv3d(dense(x, 20), dense_weight(layer), layer.bias)
    start = y.coords - torch.tensor([0, *[size // 2 for size in layer.kernel_size]])
    same_with_gradients(y.features, at(grid, start), [x.features, *layer.parameters()])
    with pytest.raises(ValueError, match="stride: expected 1 in a submanifold convolution, got 2"):
        SubMConv3d(3, 2, 3, 2)


def test_an_inverse_convolution_takes_the_pairs_of_the_layer_that_it_undoes():
    x = tensor(7)
    down = SparseConv3d(3, 4, 3, 2, padding=1, out_sites="reached", indice_key="down").double()
    other = SparseConv3d(3, 4, 2, 2, indice_key="other").double()
    up = SparseInverseConv3d(4, 2, 3, indice_key="down").double()
    y = down(x)
    z = up(y)
    assert z.coords is x.coords and z.stride == (1, 1, 1)
    pairs = y.maps.between(x.site, y.site, y.maps._names["down"][2])
    expected = torch.zeros(len(x), 2, dtype=torch.float64) + up.bias
    for k, (ins, outs) in enumerate(pairs):
        expected = expected.index_add(0, ins.long(), y.features[outs.long()] @ up.weight[k])
    same_with_gradients(z.features, expected, [x.features, *up.parameters(), *down.parameters()])
    assert torch.equal(SparseInverseConv3d(4, 2, 3).double()(y).coords, x.coords)
    other(x)
    with pytest.raises(ValueError, match="indice_key: expected the key of a layer that made these"):
        SparseInverseConv3d(4, 2, 3, indice_key="other").double()(y)
    with pytest.raises(ValueError, match="no layers of kernel size"):
        SparseInverseConv3d(4, 2, 5).double()(y)
    with pytest.raises(ValueError, match="kernel_size: expected"):
        SparseInverseConv3d(4, 2, 5, indice_key="down").double()(y)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="padding: expected an int or three, each 0 or more"):
        SparseConv3d(1, 1, 3, padding=-1)
    with pytest.raises(ValueError, match="out_sites: expected"):
        SparseConv3d(1, 1, 3, out_sites="all")
    # spconv's order, with the padding in place of the dilation and the groups in that of the bias.
    with pytest.raises(TypeError, match="bias: expected True or False, got 1"):
        SparseConv3d(1, 1, 3, 1, 1, 1)
    with pytest.raises(TypeError, match="transposed: expected True or False, got 1"):
        SparseConv3d(1, 1, 3, 1, 1, True, 1)
    layer = SparseConv3d(1, 1, 3, out_sites="reached", generative=True)
    with pytest.raises(ValueError, match="out_sites: expected .*; got 'reached'"):
        layer(torch.ones(1, 1), torch.tensor([[0, 1, 1, 1]]))
    with pytest.raises(ValueError, match=r"coords: expected shape \(N, 3\): batch, x, y"):
        SparseConv2d(1, 1, 3)(torch.ones(1, 1), torch.tensor([[0, 1, 1, 1]]))
    with pytest.raises(ValueError, match="expected a SparseTensor with 2 axes, got 3"):
        SparseConv2d(1, 1, 3)(SparseTensor(torch.ones(1, 1), torch.tensor([[0, 1, 1, 1]])))
