"""What other projects take, made of embeddings."""
