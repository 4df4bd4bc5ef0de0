{# An end of an interval, never beyond [lowest, 1]; unknown stays unknown (greatest() would drop it). #}
{% macro bounded(expression, lowest) -%}
    case when ({{ expression }}) is not null then greatest(least({{ expression }}, 1), {{ lowest }}) end
{%- endmacro %}
