"""Elements and text of a page."""

import html.parser


class Elements(html.parser.HTMLParser):
    """Collect start tags with their attributes, comments, and text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self._silent = [], [], 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")

    def handle_comment(self, data):
        self.tags.append((f"comment {data}", {}))

    def handle_data(self, data):
        if not self._silent:
            self.text.append(data)
