{# NaN means not observed, and to DuckDB it is the greatest number: make it null. #}
{% macro known(column) -%}
    case when not isnan({{ column }}) then {{ column }} end
{%- endmacro %}
