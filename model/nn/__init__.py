"""The Transformer network: plain, complete, every variant; knows neither text nor search."""
