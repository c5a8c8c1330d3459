# Latency of each process of a study, configuration by configuration. Needs ggplot2.
#
#   prony scale study.json --csv samples.csv
#   Rscript samples.R samples.csv latency.pdf
library(ggplot2)

arguments <- commandArgs(trailingOnly = TRUE)
csv <- if (length(arguments) >= 1) arguments[1] else "samples.csv"
out <- if (length(arguments) >= 2) arguments[2] else "latency.pdf"

samples <- read.csv(csv)
samples$threads <- factor(samples$intra_op_threads * samples$inter_op_threads)
samples$again <- ifelse(samples$again == 1, "baseline again", "measured")
medians <- aggregate(latency_ns ~ block + threads + again, samples, median)

plot <- ggplot(medians, aes(threads, latency_ns / 1e6, colour = again)) +
  geom_boxplot(outlier.shape = NA) +
  geom_point(position = position_jitterdodge(jitter.width = 0.2), size = 0.8) +
  labs(x = "threads (intra-op x inter-op)", y = "median of a process, ms", colour = NULL) +
  theme_bw(base_size = 10)
ggsave(out, plot, width = 12, height = 8, units = "cm")
