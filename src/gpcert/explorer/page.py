"""The page: a map of the model, the point and the region on it, and what is proved about them."""

from __future__ import annotations

import asyncio
import html
import io
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.certificates import Certificate, PredictionRange, Status
from gpcert.errors import GPCertError, InputError
from gpcert.explain.arguments import feature_labels
from gpcert.explorer.questions import (
    PICTURES,
    Asked,
    Question,
    limits_of,
    maps_of,
    plane_values,
    search_boxes,
)
from gpcert.plots.axes import LOOKS, image_shape, new_figure
from gpcert.plots.decision import outline
from gpcert.utils.optional_imports import optional

MAX_SLIDERS = 12
"""Largest number of features that have a slider each; of more, one is chosen."""

MAX_BOXES = 4000
"""Largest number of the search's boxes that are drawn."""

MAX_POINTS = 2000
"""Largest number of points that are drawn, evenly chosen."""

ADDRESS = "127.0.0.1"
"""The only address at which the page is served."""


class Explorer:
    """A page on which a model is explored, with a proved verdict at the point one clicks.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    X, y : points to show and to choose from, and their labels; by default the model's own points.
    ids : names of the points, by default the index of a data frame, or numbers.
    features : names or numbers of the two features on the map, the first two by default.
    threshold : a regression's decision is on which side of it the mean is; by default the middle
        of the values on the map.
    shape : rows and columns, of a model on the pixels of an image.

    `view()` is the page for a notebook, where an explorer also shows itself; `serve` opens it in a
    browser, at the loopback address only; `save` writes a page that needs no Python.
    """

    def __init__(
        self,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        ids: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        threshold: float | None = None,
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.model = as_posterior(model)
        self.points = self.model.places if X is None else self.model.check_inputs(X)
        if not len(self.points):
            raise InputError("X: expected at least one point to start from, got none")
        self.labels = None if y is None else np.asarray(y)
        if self.labels is not None and self.labels.shape != (len(self.points),):
            raise InputError(f"y: expected a label for each of {len(self.points)} points")
        if ids is None:
            rows: Any = getattr(X, "index", None)  # of lists a method
            ids = range(len(self.points)) if rows is None or callable(rows) else list(rows)
        self.ids = [str(each) for each in ids]
        if len(self.ids) != len(self.points):
            raise InputError(f"ids: expected one for each of {len(self.points)} points")
        self.names = [str(name) for name in feature_labels(self.model.feature_names, self.dim)]
        self.maps = maps_of(self.model)
        self.limits = limits_of(self.points)
        self.axes = self._axes(features)
        self.shape = None if shape is None else image_shape(shape, self.dim)
        x = np.array(self.points[len(self.points) // 2], dtype=float)
        if threshold is None and "quantity" in self.maps[0].arguments and not self._classifies:
            values = plane_values(self.maps[0], x, self.axes, self.limits)
            threshold = float(f"{0.5 * (values.min() + values.max()):.3g}")
        width = self.limits[1] - self.limits[0]
        radius = float(f"{0.05 * np.median(width):.1g}")
        self.question = Question(x, radius=radius, threshold=threshold)

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.model.dim

    @property
    def _classifies(self) -> bool:
        likelihood = getattr(self.model, "likelihood", None)
        return likelihood is None or likelihood.classifies

    def _axes(self, features: Sequence[Any] | None) -> tuple[int, int]:
        if self.dim < 2:
            raise InputError("model: expected at least two features for a map, got one")
        if features is None:
            varied = np.flatnonzero(np.ptp(self.points, axis=0) > 0).tolist()
            first, second = [*varied, *(j for j in range(self.dim) if j not in varied), 0][:2]
            return first, second
        if len(features) != 2:
            raise InputError(f"features: expected two, got {len(features)}")
        chosen = [self.names.index(f) if f in self.names else f for f in features]
        if not all(isinstance(j, int) and 0 <= j < self.dim for j in chosen):
            names = ", ".join(self.names[:20])
            raise InputError(f"features: expected two of {names}, got {list(features)!r}")
        return chosen[0], chosen[1]

    def view(self) -> Any:
        """The page as an object of Panel."""
        return _Page(self).layout

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.view()._repr_mimebundle_(include, exclude)

    def serve(self, port: int = 0, *, show: bool = True, threaded: bool = False) -> Any:
        """Serve the page at the loopback address until interrupted, other origins refused; `port` 0
        is a free one. With `threaded` it returns at once, the thread that serves."""
        panel = _panel()
        port = port or _free_port()
        origins = [f"{name}:{port}" for name in (ADDRESS, "localhost")]

        def document() -> Any:
            template = panel.Template(TEMPLATE)
            template.add_panel("page", self.view())
            return template

        return panel.serve(
            {"/": document},
            address=ADDRESS,
            port=port,
            websocket_origin=origins,
            show=show,
            threaded=threaded,
            title="gpcert explorer",
        )

    def save(self, path: str | Path) -> None:
        """Write one self-contained page with the map, the verdict and the range at the point; it
        needs no Python and loads nothing."""
        embed, resources = optional("bokeh.embed", EXPLORE), optional("bokeh.resources", EXPLORE)
        page = _Page(self, live=False)
        page.show_answer(*page.answered(self.question, self.maps[0]))
        parts = [page.figure, page.bokeh_text()]
        column = optional("bokeh.layouts", EXPLORE).column(*parts, sizing_mode="stretch_width")
        text = embed.file_html(column, resources.INLINE, title="gpcert explorer")
        Path(path).write_text(text, encoding="utf-8")


EXPLORE = "gpcert explore"

TEMPLATE = """{% extends base %}
{% block postamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
{% endblock %}
{% block contents %}{{ embed(roots.page) }}{% endblock %}"""
"""The served document: as wide as the screen, also on a phone."""


def _panel() -> Any:
    panel = optional("panel", EXPLORE)
    panel.extension(notifications=False)
    return panel


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


class _Page:
    """One visitor's page: widgets, what they ask, and the answers."""

    def __init__(self, explorer: Explorer, live: bool = True) -> None:
        self.panel = _panel()
        self.explorer, self.question = explorer, explorer.question
        self.axes, self.shown = explorer.axes, explorer.maps[0]
        self.certificate: Certificate | None = None
        self.running, self.again = False, False
        self._make_figure()
        if live:
            events = optional("bokeh.events", EXPLORE)
            self.figure.on_event(events.Tap, self._tapped)
            self.figure.on_event(events.SelectionGeometry, self._selected)
        self._make_widgets()
        self._draw_map()
        self._draw_region()
        self.layout = self._arranged()
        if self.panel.state.curdoc is not None:
            self.panel.state.onload(self._ask)

    # the map

    def _make_figure(self) -> None:
        plotting, models = optional("bokeh.plotting", EXPLORE), optional("bokeh.models", EXPLORE)
        palettes = optional("bokeh.palettes", EXPLORE)
        tools = "tap,box_select,pan,wheel_zoom,reset,save"
        figure = plotting.figure(
            tools=tools, active_drag="box_select", height=460, sizing_mode="stretch_width"
        )
        figure.toolbar.logo = None

        def source(*names: str) -> Any:
            return models.ColumnDataSource({name: [] for name in names})

        self.surface = source("image", "x", "y", "dw", "dh")
        self.boxes = source("left", "right", "bottom", "top")
        self.dots, self.outline = source("x", "y", "colour", "label"), source("x", "y")
        self.place, self.other = source("x", "y"), source("x", "y")
        self.colours = models.LinearColorMapper(palette=palettes.PuOr[11][::-1])
        ends = {name: name for name in ("image", "x", "y", "dw", "dh")}
        figure.image(**ends, source=self.surface, color_mapper=self.colours, alpha=0.6)
        box = {"fill_alpha": 0.0, "line_color": "#333333", "line_width": 0.5}
        figure.quad("left", "right", "top", "bottom", source=self.boxes, **box)
        dot = {"size": 5, "line_color": "#333333", "line_width": 0.4, "fill_color": "colour"}
        dot["nonselection_alpha"] = 1.0  # a box that is drawn selects nothing
        figure.scatter("x", "y", source=self.dots, **dot)
        self.patch = figure.patch("x", "y", source=self.outline, fill_alpha=0.15, line_width=2.5)
        mark = {"size": 13, "line_color": "black", "line_width": 1.2}
        figure.scatter("x", "y", source=self.place, marker="diamond", fill_color="white", **mark)
        refuted = LOOKS[Status.NOT_ROBUST].colour
        figure.scatter(
            "x", "y", source=self.other, marker="x", size=14, line_width=3, color=refuted
        )
        self.bar = models.ColorBar(color_mapper=self.colours, title="")
        figure.add_layout(self.bar, "right")
        self.figure = figure

    def _draw_map(self) -> None:
        (first, second), (low, high) = self.axes, self.explorer.limits
        values = plane_values(self.shown, self.question.x, self.axes, self.explorer.limits)
        corner = {"x": [low[first]], "y": [low[second]]}
        size = {"dw": [high[first] - low[first]], "dh": [high[second] - low[second]]}
        self.surface.data = {"image": [values], **corner, **size}
        bottom, top = float(values.min()), float(values.max())
        if "probability" in self.shown.name:
            bottom, top = 0.0, 1.0
        self.colours.update(low=bottom, high=top if top > bottom else bottom + 1.0)
        self.bar.title = self.shown.name
        figure, names = self.figure, self.explorer.names
        figure.xaxis.axis_label, figure.yaxis.axis_label = names[first], names[second]
        figure.x_range.update(start=low[first], end=high[first])
        figure.y_range.update(start=low[second], end=high[second])
        self._draw_points()

    def _draw_points(self) -> None:
        explorer = self.explorer
        keep = np.unique(np.linspace(0, len(explorer.points) - 1, MAX_POINTS).astype(int))
        points, labels = explorer.points[keep], explorer.labels
        texts = [""] * len(keep) if labels is None else list(map(str, labels[keep].tolist()))
        order = sorted(set(texts))
        shades = ["#FFFFFF", "#222222", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#E69F00"]
        colours = [shades[order.index(text) % len(shades)] for text in texts]
        x, y = points[:, self.axes[0]], points[:, self.axes[1]]
        self.dots.data = {"x": x, "y": y, "colour": colours, "label": texts}

    def _draw_region(self) -> None:
        question, pair = self.question, list(self.axes)
        center = question.x[pair]
        self.place.data = {"x": center[:1], "y": center[1:]}
        if question.box is not None:
            lower, upper = (end[pair] for end in question.box)
            corners = outline({"kind": "box", "lower": lower, "upper": upper})
        else:
            moved = question.features
            inside = None if moved is None else [k for k in (0, 1) if pair[k] in moved]
            ball = {"kind": "ball", "center": center, "radius": question.radius}
            corners = outline({**ball, "norm": question.norm, "features": inside, "domain": None})
        self.outline.data = {"x": corners[:, 0], "y": corners[:, 1]}

    def _tapped(self, event: Any) -> None:
        x = self.question.x.copy()
        x[list(self.axes)] = event.x, event.y
        self._change(self.question.moved(x=x, box=None))
        self._follow_point()

    def _selected(self, event: Any) -> None:
        ends = event.geometry
        if not event.final or ends.get("type") != "rect":
            return
        x, pair = self.question.x.copy(), list(self.axes)
        lower, upper = x.copy(), x.copy()
        lower[pair], upper[pair] = (ends["x0"], ends["y0"]), (ends["x1"], ends["y1"])
        if not np.all(lower[pair] < upper[pair]):
            return
        x[pair] = 0.5 * (lower[pair] + upper[pair])
        self._change(self.question.moved(x=x, box=(lower, upper)))
        self._follow_point()

    # the widgets

    def _make_widgets(self) -> None:
        explorer, widgets = self.explorer, self.panel.widgets
        numbers = {name: j for j, name in enumerate(explorer.names)}
        wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
        first, second = self.axes
        self.across = widgets.Select(label="Across", options=numbers, value=first, **wide)
        self.up = widgets.Select(label="Up", options=numbers, value=second, **wide)
        maps = {each.name: k for k, each in enumerate(explorer.maps)}
        self.map = widgets.Select(label="Map", options=maps, value=0, **wide)
        rows = {"(where you click)": -1, **{f"point {e}": k for k, e in enumerate(explorer.ids)}}
        middle = len(explorer.points) // 2
        self.row = widgets.Select(label="Point", options=rows, value=middle, **wide)
        longest = float(np.max(explorer.limits[1] - explorer.limits[0]))
        radius: dict[str, Any] = {"start": 0.0, "end": 0.5 * longest, "step": longest / 1000}
        self.radius = widgets.EditableFloatSlider(
            label="Radius", value=self.question.radius, format="0.0000", **radius, **wide
        )
        norms = {"largest change (l_inf)": np.inf, "Euclidean (l_2)": 2.0, "sum (l_1)": 1.0}
        self.norm = widgets.Select(label="Distance", options=norms, value=np.inf, **wide)
        moves = {"all features": 0, "the two of the map": 1}
        self.moves = widgets.Select(label="What may change", options=moves, value=0, **wide)
        self.threshold = widgets.FloatInput(
            label="Decision: mean above", value=self.question.threshold, **wide
        )
        self.threshold.visible = self.question.threshold is not None
        self.seconds = widgets.FloatInput(
            label="Seconds for a search", value=self.question.seconds, start=0.1, **wide
        )
        self.sliders = self._make_sliders()
        for each in (self.across, self.up, self.map):
            each.param.watch(self._map_changed, "value")
        self.row.param.watch(self._row_changed, "value")
        for each in (self.radius, self.norm, self.moves, self.threshold, self.seconds):
            each.param.watch(self._region_changed, "value")
        self.busy = self.panel.indicators.Progress(active=True, value=-1, visible=False, **wide)
        self.text = self.panel.pane.HTML("", **wide)
        self.line = self.panel.pane.HTML("", stylesheets=[STYLE], **wide)

    def _make_sliders(self) -> Any:
        """A slider for each feature, or one for a feature that is chosen."""
        widgets, names = self.panel.widgets, self.explorer.names
        self.by_feature: dict[int, Any] = {}
        if len(names) <= MAX_SLIDERS:
            for j in range(len(names)):
                self.by_feature[j] = self._slider(j)
            return self.panel.Column(*self.by_feature.values(), sizing_mode="stretch_width")
        numbers = {name: j for j, name in enumerate(names)}
        choice = widgets.Select(label="Other feature", options=numbers, value=0)
        column = self.panel.Column(choice, self._slider(0), sizing_mode="stretch_width")
        self.by_feature[0] = column[1]

        def choose(event: Any) -> None:
            self.by_feature = {event.new: self._slider(event.new)}
            column[1] = self.by_feature[event.new]

        choice.param.watch(choose, "value")
        return column

    def _slider(self, j: int) -> Any:
        low, high = (float(end[j]) for end in self.explorer.limits)
        value = float(np.clip(self.question.x[j], low, high))
        slider = self.panel.widgets.FloatSlider(
            label=self.explorer.names[j],
            start=low,
            end=high,
            step=(high - low) / 500,
            value=value,
            sizing_mode="stretch_width",
        )

        def moved(event: Any) -> None:
            if abs(event.new - self.question.x[j]) <= 1e-12 * (high - low):
                return
            x = self.question.x.copy()
            x[j] = event.new
            self._change(self.question.moved(x=x, box=None))
            if j not in self.axes:
                self._draw_map()

        slider.param.watch(moved, "value")
        return slider

    def _follow_point(self) -> None:
        """Set the sliders to a point that was clicked."""
        self.row.value = -1
        for j, slider in self.by_feature.items():
            slider.value = float(np.clip(self.question.x[j], slider.start, slider.end))

    def _map_changed(self, _: Any) -> None:
        if self.across.value == self.up.value:
            return
        self.axes = self.across.value, self.up.value
        self.shown = self.explorer.maps[self.map.value]
        self._draw_map()
        self._region_changed()

    def _row_changed(self, event: Any) -> None:
        if event.new < 0:
            return
        x = np.array(self.explorer.points[event.new], dtype=float)
        self._change(self.question.moved(x=x, box=None))
        for j, slider in self.by_feature.items():
            slider.value = float(np.clip(x[j], slider.start, slider.end))
        self._draw_map()

    def _region_changed(self, _: Any = None) -> None:
        features = tuple(sorted(self.axes)) if self.moves.value else None
        self._change(
            self.question.moved(
                radius=float(self.radius.value),
                norm=self.norm.value,
                features=features,
                threshold=self.threshold.value if self.threshold.visible else None,
                seconds=float(self.seconds.value or 10.0),
                box=None,
            )
        )

    def _change(self, question: Question) -> None:
        self.question = question
        self._draw_region()
        self._ask()

    # the answers

    def _ask(self) -> None:
        """Ask the newest question; while one is searched, only the last one of those that come."""
        if self.running:
            self.again = True
            return
        self.running = True
        document = self.panel.state.curdoc
        if document is None:  # no server: a notebook, a test
            self.show_answer(*self.answered(self.question, self.shown))
            self.running = False
            return
        self.busy.visible = True

        def finish(answer: tuple[Question, Any, Any]) -> None:
            self.show_answer(*answer)
            self.running, self.busy.visible = False, False

        async def search() -> None:
            while True:
                self.again = False
                answer = await asyncio.to_thread(self.answered, self.question, self.shown)
                if not self.again:
                    break
            document.add_next_tick_callback(lambda: finish(answer))  # which holds the page's lock

        document.add_next_tick_callback(search)

    def answered(self, question: Question, shown: Any) -> tuple[Question, Any, Any]:
        """The question with its certificate and its range, or with errors in their places."""
        answers: list[Any] = []
        for each in (
            lambda: question.certificate(self.explorer.model),
            lambda: question.range(self.explorer.model, shown),
        ):
            try:
                answers.append(each())
            except GPCertError as error:
                answers.append(error)
        return question, answers[0], answers[1]

    def show_answer(self, question: Question, certificate: Any, proved: Any) -> None:
        """Draw the verdict, its boxes and its counter-example, and print them."""
        known = isinstance(certificate, Certificate)
        self.certificate = certificate if known else None
        look = LOOKS[certificate.status] if known else LOOKS[Status.UNKNOWN]
        dash = {"-": "solid", "--": "dashed", ":": "dotted"}[look.line]
        style = {"line_color": look.colour, "fill_color": look.colour, "line_dash": dash}
        self.patch.glyph.update(**style)
        boxes = search_boxes(certificate, self.axes) if known else np.empty((0, 4))
        columns = boxes[:MAX_BOXES].T if len(boxes) else np.empty((4, 0))
        names = ("left", "right", "bottom", "top")
        self.boxes.data = dict(zip(names, columns, strict=True))
        other = certificate.counterexample if known else None
        at = [] if other is None else [other[list(self.axes)]]
        self.other.data = {"x": [each[0] for each in at], "y": [each[1] for each in at]}
        self.text.object = f"{_shown(certificate)}{_shown(proved)}"
        self.line.object = f"<pre class='line'>{html.escape(question.python)}</pre>"
        self.answer = question, certificate, proved

    def bokeh_text(self) -> Any:
        """The answer as a paragraph of Bokeh, for a page without Panel."""
        text = f"{self.text.object}{self.line.object}"
        return optional("bokeh.models", EXPLORE).Div(text=text, sizing_mode="stretch_width")

    # the other tabs

    def _tab(self, title: str) -> tuple[str, Any]:
        """A tab that computes a picture when asked to."""
        button = self.panel.widgets.Button(label=f"Compute the {title.lower()}", width=240)
        place = self.panel.Column(sizing_mode="stretch_width")

        def computed(asked: Asked) -> Any:
            figure = new_figure(7.0, 4.2)
            try:
                PICTURES[title](asked, figure.add_subplot())
            except GPCertError as error:
                return self.panel.pane.HTML(_shown(error))
            return self.panel.pane.Matplotlib(figure, tight=False, width=640, height=384)

        async def compute(_: Any) -> None:
            button.disabled, button.label = True, "Searching ..."
            try:
                explorer = self.explorer
                plane = self.axes, explorer.limits
                asked = Asked(self.question, explorer.model, self.shown, explorer.shape, *plane)
                place[:] = [await asyncio.to_thread(computed, asked)]
            finally:
                button.disabled, button.label = False, f"Compute the {title.lower()}"

        button.on_click(compute)
        return title, self.panel.Column(button, place, sizing_mode="stretch_width")

    def _arranged(self) -> Any:
        panel = self.panel
        narrow: dict[str, Any] = {"styles": {"flex": "1 1 260px", "max-width": "400px"}}
        asked = panel.Column(
            panel.pane.HTML("<h1>gpcert explorer</h1>"),
            *(self.map, self.across, self.up, self.row, self.radius, self.norm, self.moves),
            *(self.threshold, self.seconds, self.sliders),
            **narrow,
        )
        file: dict[str, Any] = {"filename": "certificate.json", "label": "Certificate"}
        download = panel.widgets.FileDownload(callback=self._file, width=200, **file)
        hint = panel.pane.HTML(HINT, sizing_mode="stretch_width")
        verdict = panel.Column(
            hint, self.busy, self.text, self.line, download, sizing_mode="stretch_width"
        )
        tabs = panel.Tabs(
            ("Verdict", verdict), *map(self._tab, PICTURES), sizing_mode="stretch_width"
        )
        picture = panel.pane.Bokeh(self.figure, sizing_mode="stretch_width")
        wide = {"flex": "3 1 340px", "min-width": "0"}
        results = panel.Column(picture, tabs, styles=wide)
        return panel.FlexBox(asked, results, sizing_mode="stretch_width")

    def _file(self) -> io.StringIO:
        if self.certificate is None:
            raise InputError("certificate: none yet")
        return io.StringIO(self.certificate.to_json())


HINT = (
    "<p>Click the map to move the point, drag a box on it, or move the sliders: what is printed "
    "here is proved for every point of the region. Colours of the map are plain predictions.</p>"
)

STYLE = "pre.line {white-space: pre-wrap; overflow-wrap: anywhere;}"


def _shown(answer: Any) -> str:
    """A record as a table, an error as a sentence."""
    if isinstance(answer, Certificate | PredictionRange):
        return answer._repr_html_()
    return f"<p>{html.escape(str(answer))}</p>"
