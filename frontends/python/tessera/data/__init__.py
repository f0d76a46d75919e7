"""`python -m tessera data`: makes token folders of text and conversations, shows them, and mixes them (docs/data-build.md)."""
