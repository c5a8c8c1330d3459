# Latency of each sample of a study, by threads.
#
#   prony scale study.json --csv samples.csv
#   gnuplot -e "csv='samples.csv'; out='latency.pdf'" samples.gp
#
# The ending of `out` chooses pdf, svg or png.
if (!exists("csv")) csv = "samples.csv"
if (!exists("out")) out = "latency.svg"
if (strstrt(out, ".pdf")) set terminal pdfcairo size 12cm,8cm font "Helvetica,10"
if (strstrt(out, ".svg")) set terminal svg size 720,480 font "Helvetica,12"
if (strstrt(out, ".png")) set terminal png size 1080,720
set output out
set datafile separator ","
set xlabel "threads (intra-op x inter-op)"
set ylabel "latency, ms (logarithmic)"
set grid
set xrange [0.5:*]
set logscale y # rare runs that other processes disturbed take many times as long
set offsets 0, 0.5, 0, 0
stats csv using "latency_ns" nooutput
step = ceil(STATS_records / 10000.0) # more points make a larger file of the same picture
set key off
plot csv every step using (column("intra_op_threads") * column("inter_op_threads") + 0.3 * (rand(0) - 0.5)):(column("latency_ns") / 1e6) \
     with points pointtype 7 pointsize 0.3
