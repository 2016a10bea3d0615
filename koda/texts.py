"""The words that the page's script says, in the language of the request.

Named, because the script is a file for everybody; `{name}` stands for a value.
"""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TEXTS: dict[str, str | Promise] = {
    # What became of an answer
    "waiting": _("Waiting…"),
    "thinking": _("Thinking…"),
    "reasoning_now": _("Reasoning…"),
    "starting_over": _("Starting over…"),
    "empty_answer": _("The answer is empty."),
    "failed": _("Failed: {why}"),
    "no_reason": _("no reason given"),
    "stopped": _("Stopped: {why}"),
    "stopped_user": _("Stopped by you."),
    "stopped_superseded": _("Stopped for a newer message."),
    "complete": _("The answer is complete."),
    "superseded_merged": _("What I had begun to say before your correction"),
    "superseded_retry": _("A try that broke off"),
    "superseded_recovered": _("A try whose worker was lost"),
    "turn": _("Turn {number}"),
    "correction": _("Correction"),
    # Tools
    "tool_running": _("running…"),
    "tool_completed": _("done"),
    "tool_failed": _("failed"),
    "tool_output": _("Output"),
    "tool_error": _("Error"),
    # The input box
    "ask_something": _("Ask something"),
    "add_something": _("Add something, or correct yourself"),
    "enter_sends": _("Enter sends, Shift+Enter starts a new line."),
    "joins": _("A message within {seconds} s joins the running answer."),
    "answered_next": _("A message now will be answered next."),
    "joined": _("Your message joined the running answer."),
    "message_number": _("Message {number}"),
    # Trouble
    "reconnecting": _("Reconnecting…"),
    "no_connection": _("No connection to the server."),
    "server_answered": _("The server answered {status}."),
    "signed_out": _("You are signed out."),
    "not_found": _("This conversation does not exist, or it is not yours."),
    "not_sent": _("Not sent. {why}"),
    "not_stopped": _("Not stopped. {why}"),
    "not_done": _("That did not work. {why}"),
    # The list of conversations
    "untitled": _("New conversation"),
    "nothing_found": _("Nothing found."),
    "no_conversations": _("Your conversations will be listed here."),
    "rename_it": _("Rename “{title}”"),
    "delete_it": _("Delete “{title}”"),
    # Markdown
    "copy": _("Copy"),
    "copied": _("Copied"),
    "table": _("Table"),
    "done": _("Done"),
    "to_do": _("To do"),
}
