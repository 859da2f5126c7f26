"""The model floor: kernels inside models. `swap` puts them in and takes them out again; `studies` measure what that
gives."""
