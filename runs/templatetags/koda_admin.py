"""How the admin's templates say times."""

from django import template

from runs.admin.parts import age

register = template.Library()
register.filter("koda_age", age)
