"""The names that a module's parameters and buffers have; a tied one has several."""


def first_names(pairs):
    """{first name: [tensor, other names]} of (name, tensor) pairs in which a tensor may come under several names."""
    first, by_id = {}, {}
    for name, tensor in pairs:
        if id(tensor) in by_id:
            first[by_id[id(tensor)]][1].append(name)
        else:
            by_id[id(tensor)] = name
            first[name] = [tensor, []]
    return first


def parameter_names(model):
    """{first name in named_parameters(): [parameter, other names]}."""
    return first_names(model.named_parameters(remove_duplicate=False))


def buffer_names(model):
    """{first name in named_buffers(): [buffer, other names]}."""
    return first_names(model.named_buffers(remove_duplicate=False))
