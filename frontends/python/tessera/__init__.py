"""Tessera from Python: exports PyTorch modules, and calls the tools that compile and train them."""
