"""The model floor: kernels inside models. `swap` puts them in and takes them out; `studies` measure the effect."""
