"""The admin: the place to see what runs do, and to stop one.

Read-only but for what goes through the services, and tokens, which can be revoked. No page counts
a whole table or reads more of a log than it shows; the one thing that grows with the number of
runs is a list narrowed to what hardly any run has.
"""

from runs.admin.conversation import ConversationAdmin
from runs.admin.run import RunAdmin
from runs.admin.token import ApiTokenAdmin

__all__ = ["ApiTokenAdmin", "ConversationAdmin", "RunAdmin"]
