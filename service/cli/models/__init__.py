"""Commands that bring models here from elsewhere, and list them."""
