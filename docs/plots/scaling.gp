# Speed-up over threads of one or several studies, with 95 % intervals. Columns are found by their names.
#
#   prony scale --join a.json b.json --csv results.csv
#   gnuplot -e "csv='results.csv'; out='speedup.pdf'" scaling.gp
#
# The ending of `out` chooses pdf, svg or png.
if (!exists("csv")) csv = "results.csv"
if (!exists("out")) out = "speedup.svg"
if (strstrt(out, ".pdf")) set terminal pdfcairo size 12cm,8cm font "Helvetica,10"
if (strstrt(out, ".svg")) set terminal svg size 720,480 font "Helvetica,12"
if (strstrt(out, ".png")) set terminal png size 1080,720
set output out
set datafile separator ","
set datafile missing ""
set key left top
set xlabel "threads (intra-op x inter-op)"
set ylabel "speed-up"
set grid
set offsets graph 0.03, graph 0.03, 0, 0
set yrange [0:*]
studies = system("awk -F, 'NR > 1 && !seen[$1]++ {gsub(/\"/, \"\", $1); print $1}' '" . csv . "'")
threads(x) = column("intra_op_threads") * column("inter_op_threads")
kept(name) = (strcol("study") eq name && column("again") == 0 && column("replicas") == 1)
plot x with lines dashtype 2 linecolor "gray" title "ideal", \
     for [i = 1:words(studies)] csv using \
         (kept(word(studies, i)) ? threads(0) : NaN):(column("speedup")):(column("speedup_low")):(column("speedup_high")) \
         with yerrorlines pointtype 7 title word(studies, i)
