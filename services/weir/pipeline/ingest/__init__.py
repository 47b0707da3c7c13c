"""`weir pipeline ingest`: rollups from Redis and spans from files become the bronze tables."""
