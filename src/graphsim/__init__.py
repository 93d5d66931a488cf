"""A look-alike of Microsoft Graph and Entra, as far as reading files from drives needs them."""
