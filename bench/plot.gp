# plot.gp: time against row length, on logarithmic axes. report.py sets ranges, ticks, a note, `out`, `title`, `ylabel`,
# `right` (the longest row), `curves` (their number) and `colours`, one word per curve: 0 is a limit, 1 is this library.
# `data` has one
# block per curve, with lines of row length, median, lower and upper quartile. `labels` has lines of x, y, colour, name.
set encoding utf8
set terminal svg size 860,520 font "sans-serif,13" background rgb "white"
set output out
set title title noenhanced
set logscale xy
set xlabel "entries per row"
set ylabel ylabel
set format x "%.0f"
set ytics add ("0.2" 0.2, "0.3" 0.3, "0.5" 0.5, "2" 2, "3" 3, "5" 5, "20" 20, "30" 30, "50" 50, "200" 200, "300" 300, "500" 500)
set grid ytics lc rgb "#dddddd"
set rmargin 24
set border 3
set tics nomirror
unset key
# Colour-blind readers can tell these apart (Okabe and Ito 2008); points differ, too.
palette = "0x1f83d0 0x7fc4f0 0xd55e00 0xe8a060 0x404040 0xc066a0 0x079a72 0x8a5a2b"
forms = "7 6 5 4 9 11 13 8"
colour(i) = i == 0 ? 0xa0a0a0 : int(word(palette, i))
plot for [i = 1:curves] data index i - 1 using 1:2:3:4 with yerrorlines \
         lw (word(colours, i) eq "1" ? 3 : 1.5) pt (word(colours, i) eq "0" ? 2 : int(word(forms, int(word(colours, i))))) ps 0.7 lc rgb colour(int(word(colours, i))), \
     labels using 1:2:4:(colour(int($3))) with labels left offset 1,0 tc rgb variable noenhanced
