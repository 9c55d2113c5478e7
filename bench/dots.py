"""dots.py: SVG charts whose rows are functions and whose marks are times or errors, on a logarithmic axis."""
import math

# Marks differ in form and colour. Colour-blind readers can tell them apart; they are visible on white and on black.
FORMS = {"circle": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "square": "m-4.5-4.5h9v9h-9z", "diamond": "m0-6l6 6-6 6-6-6z"}
STYLE = """<style>
text { fill: #24292f } .ground { fill: #fff } .grid { stroke: #d8dee4 } .b { font-weight: bold }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .ground { fill: #0d1117 } .grid { stroke: #30363d } }
</style>
"""
LEFT, TOP, LINE = 190, 92, 21


def label(value):
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


def ticks(low, high):
    steps = (1, 2, 5) if high / low < 100 else (1,) if high / low > 3000 else (1, 3)
    return [step * 10.0 ** power for power in range(-4, 7) for step in steps if low <= step * 10.0 ** power <= high]


class Panel:
    """Marks of one quantity: rows[i][j] is the value of mark j in row i, or None."""

    def __init__(self, title, rows, left, width):
        values = [value for row in rows for value in row if value]
        self.title, self.rows, self.left, self.width = title, rows, left, width
        self.low, self.high = (min(values) / 1.25, max(values) * 1.25) if values else (1, 10)

    def x(self, value):
        return self.left + self.width * math.log(value / self.low) / math.log(self.high / self.low)


def mark(x, y, form, colour, filled):
    fill = colour if filled else "none"
    return f'<path fill="{fill}" stroke="{colour}" stroke-width="1.5" d="M{x:.1f} {y:.1f}{FORMS[form]}"/>\n'


def draw(path, title, names, marks, panels, race=False):
    """names: labels of rows, those without values are headings. marks: (name, form, colour). A panel is (title, rows). In
    a race the smallest value of a row is filled, and a number is the first mark's value over the second's."""
    width, gap = 330, 64
    placed = [Panel(heading, rows, LEFT + i * (width + gap), width) for i, (heading, rows) in enumerate(panels)]
    height, right = TOP + LINE * len(names) + 40, LEFT + len(panels) * (width + gap) - 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {height}" width="{right}" height="{height}" '
           f'role="img" font-family="Helvetica, Arial, sans-serif" font-size="14">\n<title>{title}</title>\n{STYLE}'
           f'<rect class="ground" width="{right}" height="{height}"/>\n<text x="10" y="22">{title}</text>\n']
    for i, (name, form, colour) in enumerate(marks):
        x = 18 + 150 * i
        out += [mark(x, 43, form, colour, not race or i == 0), f'<text x="{x + 12}" y="48">{name}</text>\n']
    if race:
        out.append(f'<text x="{26 + 150 * len(marks)}" y="48">filled: the fastest; number: {marks[0][0]} / {marks[1][0]}</text>\n')
    bottom = TOP + LINE * len(names)
    for panel in placed:
        out.append(f'<text x="{panel.left}" y="{TOP - 18}">{panel.title}</text>\n')
        for tick in ticks(panel.low, panel.high):
            x = panel.x(tick)
            out += [f'<path class="grid" d="M{x:.1f} {TOP - 6}V{bottom}"/>\n',
                    f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label(tick)}</text>\n']
    for row, name in enumerate(names):
        y = TOP + LINE * row + 10
        heading = all(not any(panel.rows[row]) for panel in placed)
        out.append(f'<text x="10" y="{y + 5}" class="{"b" if heading else ""}">{name}</text>\n')
        for panel in placed:
            values = panel.rows[row]
            known = [value for value in values if value]
            if known:
                out.append(f'<path class="grid" d="M{panel.x(min(known)):.1f} {y}H{panel.x(max(known)):.1f}"/>\n')
            for (_, form, colour), value in zip(marks, values):
                if value:
                    out.append(mark(panel.x(value), y, form, colour, not race or value == min(known)))
            if race and len(known) > 1 and values[1]:
                out.append(f'<text x="{panel.left + panel.width + 40}" y="{y + 5}" text-anchor="end" '
                           f'class="{"b" if values[0] <= values[1] else ""}">{values[0] / values[1]:.2f}</text>\n')
    with open(path, "w") as file:
        file.write("".join(out) + "</svg>\n")
