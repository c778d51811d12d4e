"""What identifies an experiment: settings, objects and code as plain data, and their digest. Needs no JAX."""

from splagger.identity.code import consists_of_ours as consists_of_ours
from splagger.identity.code import is_from_this_package as is_from_this_package
from splagger.identity.describe import NEWER_FIELDS as NEWER_FIELDS
from splagger.identity.describe import agrees as agrees
from splagger.identity.describe import builder as builder
from splagger.identity.describe import differences as differences
from splagger.identity.describe import digest_of as digest_of
from splagger.identity.describe import kind_of_others as kind_of_others
from splagger.identity.describe import plain as plain
