"""Real git repositories with a little code in them, for the survey's tests."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SEALED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_DATE": "2024-05-01T12:00:00Z",
    "GIT_COMMITTER_DATE": "2024-05-01T12:00:00Z",
}

SHOP = {
    "src/shop/cart.py": '''"""The cart."""


class Cart:
    """What a customer is about to buy."""

    def add_item(self, item, quantity):
        """Put an item into the cart."""
        self.items.append((item, quantity))

    def applyDiscount(self, voucher):
        """Take the voucher's discount off the total."""
        return self.total - voucher.amount
''',
    "src/shop/mail.py": '''"""Letters to customers."""


def send_receipt(customer, order):
    """Send the receipt by e-mail, with retries on a broken connection."""
    for attempt in range(3):
        deliver(customer.address, order)
''',
    "src/shop/stock.py": '''"""The stock."""


def reserve(item, quantity):
    """Reserve a quantity of an item in the warehouse."""
    return warehouse.take(item, quantity)
''',
    "tests/test_cart.py": """from shop.cart import Cart


def test_apply_discount_of_a_voucher():
    assert Cart().applyDiscount(voucher) == 0
""",
    "web/basket.js": "export function renderBasket(basket) {\n  return basket.items.map(renderItem);\n}\n",
    "README.md": "# The shop\n\nA cart, a discount voucher, a receipt.\n",
}


def run_git(root: Path, *words: str, feed: bytes = b"") -> bytes:
    """Run git as a person with a name would; returns what it prints."""
    kept = {"PATH": os.environ["PATH"], "HOME": str(root), **SEALED}
    return subprocess.run(["git", *words], cwd=root, env=kept, input=feed, capture_output=True, check=True).stdout


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write *files* (path to content) below *root*."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())


def commit(root: Path, message: str, files: dict[str, str | bytes]) -> str:
    """Write and commit *files*; returns the commit's id."""
    write(root, files)
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", message, "--allow-empty")
    return run_git(root, "rev-parse", "HEAD").decode().strip()


def empty(root: Path) -> Path:
    """Make a repository without a commit."""
    root.mkdir(parents=True, exist_ok=True)
    run_git(root, "init", "-q", "-b", "main")
    return root


def shop(root: Path) -> Path:
    """Make a repository with a small shop and two commits."""
    empty(root)
    commit(root, "Open the shop", dict(SHOP))
    mail = SHOP["src/shop/mail.py"].replace("range(3)", "range(5)")
    commit(root, "Send receipts again when the mail server hangs up", {"src/shop/mail.py": mail})
    return root
