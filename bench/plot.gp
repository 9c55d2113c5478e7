# plot.gp: time against row length, on logarithmic axes. report.py sets the ranges, `out`, `title`, `ylabel`, `right` (the
# longest row), `curves` (their number) and `colours`, one word per curve: 0 is a limit, 1 is this library. `data` has one
# block per curve, with lines of row length, median, lower and upper quartile. `labels` has lines of x, y, colour and name.
set encoding utf8
set terminal svg size 860,520 font "sans-serif,13" background rgb "white"
set output out
set title title noenhanced
set logscale xy
set xlabel "entries per row"
set ylabel ylabel
set format x "%.0f"
set xtics ("2" 2, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "512" 512, "1k" 1024, "4k" 4096)
if (right > 4096) {
    set xtics ("8" 8, "16" 16, "64" 64, "256" 256, "1k" 1024, "4k" 4096, "32k" 32000, "128k" 131072, "1M" 1048576, "16M" 16777216)
}
set ytics add ("0.2" 0.2, "0.3" 0.3, "0.5" 0.5, "2" 2, "3" 3, "5" 5, "20" 20, "30" 30, "50" 50, "200" 200, "300" 300, "500" 500)
set grid ytics lc rgb "#dddddd"
set rmargin 24
set border 3
set tics nomirror
unset key
palette = "0xd03000 0x0060c0 0x208020 0x8030a0 0x00a0a0 0xa06000 0xe060a0 0x404040"
colour(i) = i == 0 ? 0xa0a0a0 : int(word(palette, i))
plot for [i = 1:curves] data index i - 1 using 1:2:3:4 with yerrorlines \
         lw (word(colours, i) eq "1" ? 3 : 1.5) pt 7 ps 0.5 lc rgb colour(int(word(colours, i))), \
     labels using 1:2:4:(colour(int($3))) with labels left offset 1,0 tc rgb variable noenhanced
