-- Variables that the caller defines as text, read as numbers, truth values and NULL.
\set turn :turn + 1
\set t_int :d_int + 1
\set t_plus :d_plus + 1
\set t_blank :d_blank + 1
\set t_double :d_double + 1
\set t_exponent :d_exponent + 0
\set t_null :d_null is null
\set t_yes :d_yes or false
\set t_ye :d_ye or false
\set t_on :d_on or false
\set t_off :d_off or false
\set t_of :d_of or false
\set t_n :d_n or false
\set t_true not :d_true
\set t_infinity :d_infinity > 1
\set t_minus :d_minus
\set t_copy :d_exponent
