# Speed-up over threads of one or several studies, with 95 % intervals. Needs ggplot2.
#
#   prony scale --join a.json b.json --csv results.csv
#   Rscript scaling.R results.csv speedup.pdf
library(ggplot2)

arguments <- commandArgs(trailingOnly = TRUE)
csv <- if (length(arguments) >= 1) arguments[1] else "results.csv"
out <- if (length(arguments) >= 2) arguments[2] else "speedup.pdf"

results <- read.csv(csv)
results <- subset(results, again == 0 & replicas == 1 & !is.na(speedup))
results$threads <- results$intra_op_threads * results$inter_op_threads
results$group <- interaction(results$study, results$batch, results$precision, drop = TRUE)

plot <- ggplot(results, aes(threads, speedup, colour = study, group = group)) +
  geom_abline(slope = 1, intercept = 0, linetype = "dashed", colour = "grey60") +
  geom_line() +
  geom_pointrange(aes(ymin = speedup_low, ymax = speedup_high)) +
  scale_x_continuous(breaks = sort(unique(results$threads))) +
  labs(x = "threads (intra-op x inter-op)", y = "speed-up", colour = NULL) +
  theme_bw(base_size = 10)
ggsave(out, plot, width = 12, height = 8, units = "cm")
