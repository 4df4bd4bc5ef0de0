select
    suite,
    headline
from {{ source('suites', 'suite_facts') }}
