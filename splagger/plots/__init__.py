"""Figures: styles, panels, drawing and export. Needs NumPy, pandas and matplotlib, not JAX."""

from splagger.plots.adaptation import draw_adaptation as draw_adaptation
from splagger.plots.analyses import draw_analysis as draw_analysis
from splagger.plots.draw import picture as picture
from splagger.plots.export import save as save
from splagger.plots.memory import draw_memory as draw_memory
from splagger.plots.panels import CurvePanel as CurvePanel
from splagger.plots.panels import Figure as Figure
from splagger.plots.panels import Line as Line
from splagger.plots.plot import plot as plot
from splagger.plots.styles import STYLES as STYLES
from splagger.plots.styles import style_of as style_of
