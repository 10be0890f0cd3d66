-- Every random function, the same generator through all of them.
\set turn :turn + 1
\set r_one random(5, 5)
\set r_ten random(1, 10)
\set r_account random(1, 100000 * :scale)
\set r_minus random(-5000, 5000)
\set r_power random(0, 1023)
\set r_power_more random(0, 1024)
\set r_large random(0, 9223372036854775806)
\set r_low random(-9223372036854775808, -1 - 1)
\set r_double random(1.4, 9.6)
\set g_least random_gaussian(1, 100, 2)
\set g_five random_gaussian(1, 100000, 5.0)
\set g_large random_gaussian(-1000000000000, 1000000000000, 12.5)
\set e_small random_exponential(1, 100, 0.01)
\set e_five random_exponential(1, 100000, 5)
\set e_large random_exponential(-1000000000000, 1000000000000, 50.5)
\set z_least random_zipfian(1, 100, 1.001)
\set z_usual random_zipfian(1, 100000, 1.07)
\set z_two random_zipfian(-5, 1000000, 2)
\set z_most random_zipfian(1, 10, 1000)
\set z_one random_zipfian(3, 3, 1.5)
-- Which side draws first shows in the values that follow.
\set o_less random(1, 1000) < random(1, 1000000)
\set o_greater random(1, 1000) > random(1, 1000000)
\set o_greater_equal random(1, 1000000) >= random(1, 1000)
\set o_after random(1, 1000000)
\set o_lazy false and random(1, 10) > 0
\set o_lazy_after random(1, 1000000)
\set o_case case when random(1, 2) = 1 then random(1, 10) else random(100, 1000) end
\set o_case_after random(1, 1000000)
\set o_minus - random(1, 10) + random(1, 100) * random(1, 1000)
\set o_is random(1, 10) is null
\set o_last permute(random(0, 999), 1000, random(1, 1000000))
