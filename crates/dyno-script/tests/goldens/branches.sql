-- Branches by client, transaction and chance. A variable may stay unset.
\set turn :turn + 1
\set path 0
\if :turn % 2 = 0
  \set path :path + 1
  \if random(1, 3) = 1
    \set path :path + 10
    \set lucky :turn
  \elif :client_id = 1
    \set path :path + 20
  \else
    \set path :path + 30
    \if null
      \set path -1
    \endif
  \endif
\elif :turn = 3
  \set path :path + 2
  \set third true
\elif :turn = 77
  \set path -2
\endif
\if :path
\else
  \set empty 1
\endif
\if 0.0
  \set path -3
\elif 0.5
  \set path :path + 1000
\elif :nowhere
  \set path -4
\endif
\set last random(1, 1000000) + \
   random(1, 10)
