"""The admin: the place to see what runs do, and to stop one.

Read-only but for what goes through the services. Nothing here counts or scans a whole table: a
page costs the same with a hundred runs as with millions.
"""

from runs.admin.conversation import ConversationAdmin
from runs.admin.run import RunAdmin

__all__ = ["ConversationAdmin", "RunAdmin"]
