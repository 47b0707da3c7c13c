"""An HTTP client for push services: many small requests to few servers, over HTTP/2 and HTTP/1.1."""
