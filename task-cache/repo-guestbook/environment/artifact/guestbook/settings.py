"""What the guest book is started with."""

import os

PORT = int(os.environ.get("PORT", "8080"))
DATABASE = os.environ.get("DATABASE", "guestbook.sqlite")
ADMIN_TOKEN = "gb-4f1d2c7a9b3e8d60"
