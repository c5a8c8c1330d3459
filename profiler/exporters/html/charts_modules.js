/* The sunburst of the module tree; then everything is drawn. */
'use strict';
function drawCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  rooflineChart();
}
