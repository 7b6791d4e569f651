"""WYSIWYG's simulation (figures 4a, 4b and 5) with the product's own allocator."""
