{# An end of an interval, never beyond [-1, 1]; unknown stays unknown (greatest() would drop it). #}
{% macro bounded(expression) -%}
    case when ({{ expression }}) is not null then greatest(least({{ expression }}, 1), -1) end
{%- endmacro %}
