"""The order journal, write, settle, restore, explored completely within stated bounds."""
