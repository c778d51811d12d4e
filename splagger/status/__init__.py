"""Which experiments wait, train, ended or failed, where and why: from files alone. Needs no JAX."""

from splagger.status.overview import Overview as Overview
from splagger.status.overview import overview as overview
from splagger.status.plan import write_plan as write_plan
from splagger.status.progress_file import Reporter as Reporter
from splagger.status.row import Row as Row
from splagger.status.table import status_table as status_table
