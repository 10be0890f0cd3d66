-- Every operator and function that draws no random number.
\set turn :turn + 1
\set i_sum 1 + 2 * 3 - 4 / 3 % 5
\set i_unary - 3 + + 4 - - 5
\set i_smallest -9223372036854775808
\set i_largest 9223372036854775807
\set i_div (-7) / 2
\set i_mod (-7) % 2
\set i_mod_minus -9223372036854775807 % -1
\set i_bits ~ 1 + 2 | 12 & 10 # 6 << 2
\set i_bits2 ~5 & 7
\set i_shift 1 << 62 >> 3
\set i_shift_sign -1024 >> 3
\set i_shift_wide 1 << 65
\set i_not_prefix 2 * ~ 1 + 3
\set d_sum 1 + 2.5
\set d_div 7 / 2.0
\set d_mod 7.5 % 2.5
\set d_bits 5.5 & 7.4
\set d_small .5e-3
\set d_tiny 1.5e-300
\set d_large 1e15
\set d_less_large 123456789012345.0
\set d_third 1 / 3.0
\set d_point 5.
\set d_negative_zero -1 * 0.0
\set d_zero 0.0
\set d_infinite 1 / 0.0
\set d_minus_infinite -1 / 0.0
\set d_nan 0.0 / 0.0
\set b_compare 1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 <> 2 and 1 != 2 and 1 = 1.0
\set b_not not 1 = 2
\set b_not_and not false and false
\set b_or true or 1 / 0 = 1
\set b_and false and 1 / 0 = 1
\set b_null_and null and false
\set b_and_null true and null
\set b_null_or null or true
\set b_is null is null
\set b_isnull 5 isnull
\set b_notnull 5 notnull
\set b_is_not 1 = 1 is not false
\set b_is_true 1 is true
\set b_is_double (1.0 = 1) is true
\set b_chain null is null is null
\set b_level 1 + 1 = 2 is true
\set n_plain null
\set n_sum null + 1
\set n_call abs(null)
\set n_case case when false then 1 end
\set c_first case when 1 = 1 then 10 when 1 / 0 = 1 then 20 else 30 end
\set c_second case when null then 10 when 2.5 then 20 else 30 end
\set c_else case when 0 then 10 when 0.0 then 20 else 30 end
\set c_nested case when case when true then false end then 1 else case when true then 2 end end
\set f_abs abs(-7)
\set f_abs_double abs(-7.25)
\set f_debug debug(5)
\set f_double double(7)
\set f_exp exp(1)
\set f_exp_large exp(700.5)
\set f_greatest greatest(1, 5, 3)
\set f_greatest_double greatest(1, 5.5, 3)
\set f_least least(4, 2, 8, 3)
\set f_least_one least(9)
\set f_least_double least(4, 2.0)
\set f_int int(2.5)
\set f_int_odd int(3.5)
\set f_int_minus int(-2.5)
\set f_int_int int(42)
\set f_ln ln(10)
\set f_ln_zero ln(0)
\set f_mod mod(-17, 5)
\set f_pi pi()
\set f_pow pow(2, 10)
\set f_power power(2.5, -3.1)
\set f_sqrt sqrt(2)
\set f_sqrt_nan sqrt(-1)
\set h_default hash(42)
\set h_plain hash(42, 7)
\set h_minus hash(-1, -1)
\set h_murmur hash_murmur2(1234567890123)
\set h_fnv hash_fnv1a(42)
\set h_fnv_seed hash_fnv1a(-42, 5432)
\set h_double hash(2.5, 1.5)
\set p_default permute(:turn, 1000)
\set p_seed permute(7, 9, 5432)
\set p_one permute(7, 1)
\set p_two permute(7, 2, 5)
\set p_three permute(-7, 3, 5)
\set p_large permute(123456789, 9223372036854775807, :turn)
\set p_minus permute(-9223372036854775808, 1000003, -1)
\set v_client :client_id * 1000 + :turn
\set v_seed :random_seed
\set v_default_seed :default_seed
\set v_scale :scale
