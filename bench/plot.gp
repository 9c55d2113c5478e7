# plot.gp: speed of softmax against row length. report.py sets `data`, `out` and `title`: one block a kernel with its
# name on top and lines of row length and ns per entry; the first two blocks are the limits.
set encoding utf8
set terminal svg size 860,520 font "sans-serif,13" background rgb "white"
set output out
set title title noenhanced
set logscale x 4
set xrange [8:*]
set yrange [0:*]
set xlabel "entries a row"
set ylabel "entries per ns: higher is faster"
set format x "%.0f"
set xtics ("16" 16, "64" 64, "256" 256, "1k" 1024, "4k" 4096, "32k" 32768, "128k" 131072, "1M" 1048576, "16M" 16777216)
set grid ytics lc rgb "#dddddd"
set key outside right top Left reverse samplen 2
set border 3
set tics nomirror
stats data using 1 nooutput
blocks = int(STATS_blocks)
plot data index 0 using 1:3:2 with filledcurves fc rgb "#e4e4e4" title "limit: copy, row max and copy", \
     for [i = 1:blocks - 1] data index i using 1:2 with linespoints lw (i == 1 ? 3 : 1.5) pt 7 ps 0.4 lc i \
         title columnheader(1)
