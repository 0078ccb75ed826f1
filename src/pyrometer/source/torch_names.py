"""What torch's functions, methods and modules return, by name; taken from the schemas of its operators."""

from __future__ import annotations

from pyrometer.source.words import words

OPERATIONS = words("""
    abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr adjoint affine_grid all
    alpha_dropout amax amin angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere
    as_strided asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bernoulli bilinear
    binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm broadcast_to bucketize cat cdist ceil celu chain_matmul channel_shuffle cholesky
    cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip clone column_stack combinations complex concat
    concatenate conj conj_physical constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cov cross
    cross_entropy ctc_loss cumprod cumsum deg2rad det detach diag diag_embed diagflat diagonal diagonal_scatter diff
    digamma dist div divide dot dropout dropout1d dropout2d dropout3d dstack einsum elu embedding embedding_bag eq erf
    erfc erfinv exp exp2 expm1 feature_alpha_dropout fix flatten flip fliplr flipud float_power floor floor_divide fmax
    fmin fmod fold frac fractional_max_pool2d fractional_max_pool3d gather gaussian_nll_loss ge gelu ger glu greater
    greater_equal grid_sample group_norm gt gumbel_softmax hardshrink hardsigmoid hardswish hardtanh heaviside
    hinge_embedding_loss histc hstack huber_loss hypot i0 igamma igammac index_add index_copy index_fill index_put
    index_reduce index_select inner instance_norm interpolate inverse isclose isfinite isin isinf isnan isneginf isposinf
    isreal istft kl_div kron l1_loss layer_norm lcm ldexp le leaky_relu lerp less less_equal lgamma linear
    local_response_norm log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
    logical_or logical_xor logit logsigmoid logsumexp lp_pool1d lp_pool2d lt lu_solve margin_ranking_loss masked_fill
    masked_scatter masked_select matmul matrix_exp matrix_power max_pool1d max_pool2d max_pool3d max_unpool1d
    max_unpool2d max_unpool3d maximum mean minimum mish mm moveaxis movedim mse_loss msort mul multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian
    nanquantile nansum narrow ne neg negative nextafter nll_loss nonzero norm normalize not_equal one_hot orgqr ormqr
    outer pad pairwise_distance pdist permute pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar
    polygamma positive pow prelu prod put quantile rad2deg ravel real reciprocal relu relu6 remainder renorm repeat
    repeat_interleave reshape rms_norm roll rot90 round row_stack rrelu rsqrt rsub scaled_dot_product_attention scatter
    scatter_add scatter_reduce searchsorted select select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh
    slice_scatter smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign sqrt square squeeze stack
    std stft sub subtract sum swapaxes swapdims t take take_along_dim tan tanh tanhshrink tensordot threshold tile trace
    transpose trapezoid trapz tril triplet_margin_loss triplet_margin_with_distance_loss triu true_divide trunc unflatten
    unfold unsqueeze upsample vander var vdot view_as_complex view_as_real vstack where xlogy
    """)
"""Functions of torch and torch.nn.functional that take tensors and return one."""

FACTORIES = words("""
    arange as_tensor asarray bartlett_window blackman_window empty empty_like empty_strided eye from_dlpack from_file
    from_numpy frombuffer full full_like hamming_window hann_window kaiser_window linspace logspace normal ones
    ones_like rand rand_like randint randint_like randn randn_like randperm range scalar_tensor sparse_coo_tensor
    sparse_csr_tensor tensor tril_indices triu_indices zeros zeros_like
    """)
"""Functions of torch that make a tensor."""

NUMERIC = words(
    """
    cholesky cond cross det diagonal eigvals eigvalsh erf expit fft fft2 fftfreq fftn fftshift gammaln hfft
    householder_product ifft ifft2 ifftn ifftshift ihfft inv irfft irfft2 irfftn log_softmax logit lu_solve matmul
    matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv rfft rfft2 rfftfreq rfftn softmax solve
    solve_triangular svdvals tensorinv tensorsolve vander vecdot vector_norm
    """
)
"""Functions of torch.linalg, torch.fft and torch.special that return one tensor."""

TAKING_LISTS = words(
    "cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag cartesian_prod"
)
"""Functions of torch whose first argument is a list of tensors."""

SEQUENCES = words("""
    adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices aminmax broadcast_tensors chunk cummax cummin
    dsplit frexp geqrf gradient gru hsplit kthvalue lstm max_pool1d_with_indices max_pool2d_with_indices meshgrid mode
    multi_head_attention_forward qr slogdet sort split split_with_sizes std_mean svd svd_lowrank tensor_split topk
    triangular_solve unbind unsafe_chunk unsafe_split var_mean vsplit
    """)
"""Functions and methods that return several tensors."""

REDUCING = frozenset(["max", "min", "median", "nanmedian"])
"""One tensor of all elements; with a dimension, the values and their indices."""

METHODS = OPERATIONS | words("""
    bfloat16 bool byte cfloat chalf char clamp coalesce contiguous cpu cuda double expand expand_as float half index int
    long masked_fill mtia new_empty new_full new_ones new_tensor new_zeros pin_memory repeat requires_grad_ reshape_as
    resize short sum_to_size random uniform normal exponential geometric cauchy log_normal fill zero copy set
    fill_diagonal to to_dense to_sparse type_as view view_as xpu
    """)
"""Methods of a tensor that return one; those that end in an underscore are found without it."""

TENSOR_ONLY_METHODS = words("""
    backward bmm byte clamp clamp_ clamp_min contiguous detach detach_ expand_as logsumexp log_softmax masked_fill
    masked_fill_ masked_select new_empty new_full new_ones new_zeros numel permute scatter_ scatter_add_ softmax
    type_as unbind unsqueeze unsqueeze_ view_as long int topk t retain_grad record_stream mul_ add_ div_ copy_ zero_ is_floating_point
    """)
"""Methods that of all common libraries only tensors have: whatever they are called on is one."""

HOST_METHODS = words("""
    allclose data_ptr dense_dim dim dim_order element_size equal get_device is_coalesced is_complex is_conj
    is_contiguous is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to
    is_shared is_signed item ndimension nelement numel q_scale size sparse_dim storage_offset stride tolist
    """)
"""Methods of a tensor that return numbers, flags, sizes or lists of numbers."""

HOST_FUNCTIONS = words("""
    allclose are_deterministic_algorithms_enabled can_cast device dtype equal finfo get_default_device get_default_dtype
    get_device get_num_threads iinfo initial_seed is_autocast_enabled is_complex is_floating_point is_grad_enabled
    is_inference_mode_enabled is_nonzero is_storage is_tensor numel promote_types result_type seed typename Size
    """)
"""Functions of torch that return no tensor."""

HOST_ATTRIBUTES = words("""
    device dtype grad_fn is_cuda is_leaf is_mps is_nested is_quantized is_sparse itemsize layout name names nbytes ndim
    output_nr requires_grad shape
    """)

INDIFFERENTIABLE = words("""
    all any argmax argmin argsort argwhere bincount bitwise_and bitwise_not bitwise_or bitwise_xor bool bucketize byte
    char count_nonzero detach eq floor_divide ge greater greater_equal gt heaviside histc int isclose isfinite isin isinf isnan
    isneginf isposinf isreal le less less_equal logical_and logical_not logical_or logical_xor long lt multinomial ne nonzero
    not_equal one_hot searchsorted short signbit
    """)
"""Operations whose result never carries a graph."""

LIKE_OPERATIONS = frozenset(["new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"])
"""Methods that make a fresh tensor."""

WITHOUT_PARAMETERS = words("""
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
    AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss CELU CTCLoss ChannelShuffle ConstantPad1d
    ConstantPad2d ConstantPad3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss Dropout Dropout1d Dropout2d
    Dropout3d ELU Flatten Fold GELU GLU GaussianNLLLoss Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss
    HuberLoss Identity KLDivLoss L1Loss LPPool1d LPPool2d LeakyReLU LocalResponseNorm LogSigmoid LogSoftmax MSELoss
    MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish MultiLabelMarginLoss
    MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PairwiseDistance PixelShuffle PixelUnshuffle PoissonNLLLoss RReLU
    ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU
    SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink
    Threshold TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold Upsample UpsamplingBilinear2d
    UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    """)
"""Modules of torch.nn without parameters: their result carries a graph only if an input does."""

TUPLE_MODULES = frozenset(
    [
        "LSTM",
        "GRU",
        "RNN",
        "LSTMCell",
        "MultiheadAttention",
        "AdaptiveLogSoftmaxWithLoss",
        "FractionalMaxPool2d",
    ]
)
"""Modules of torch.nn that return several tensors."""

MODULE_CONTAINERS = frozenset(["ModuleList", "ModuleDict", "ParameterList", "ParameterDict"])
"""Modules of torch.nn that hold others and cannot be called."""

MODULE_ROOTS = ("torch.nn.", "torchvision.models.", "torchvision.ops.", "torchaudio.models.", "timm.models.")
"""Where classes with a capital letter are modules."""

MODULE_FACTORIES = words("""
    torch.compile torch.jit.script torch.jit.trace torch.jit.load torch.hub.load timm.create_model
    torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.nn.SyncBatchNorm.convert_sync_batchnorm
    torch.distributed.fsdp.FullyShardedDataParallel torch.jit.freeze torch.jit.optimize_for_inference
    """)
"""Functions that return a module when they are given one, or by themselves."""
