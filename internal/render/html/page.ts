// The script of a page. The page is complete without it: the script shows controls for what is in the page already. It requests nothing, and it sets text
// only as text. State that a reader may want to send is in the fragment of the address.

/** Line pairs: the class of the cell, then the text and the class of each line. */
type CellData = string[]
type Comparison = [size: number | null, shown: number, factor: CellData, difference: CellData]

interface MatrixData {
  /** The names of the rows and of the columns. */
  nouns: [string, string]
  targets: string[]
  rows: { id: string; suite: string; rest: boolean }[]
  values: CellData[][]
  bases: Comparison[][][]
}

interface Row {
  index: number
  element: HTMLTableRowElement
  cells: HTMLTableCellElement[]
  /** The choice that the cells show. */
  drawn: string
}

const all = <E extends Element>(root: ParentNode, selector: string): E[] => Array.from(root.querySelectorAll<E>(selector))

/** Reports whether the fragment is a state. Any other one is the address of a section. */
const hasState = () => /^#(m|base|show|order|shown|all|t|s|p)=/.test(location.hash)

let last = ""

/** The state in the address. It stays as it is when the reader follows the address of a section. */
function stateOf(): URLSearchParams {
  if (hasState()) last = location.hash.slice(1)
  return new URLSearchParams(last)
}

function keep(state: URLSearchParams): void {
  last = state.toString().replace(/%2F/g, "/").replace(/%40/g, "@")
  history.replaceState(null, "", last === "" ? location.pathname + location.search : "#" + last)
}

function fill(cell: HTMLElement, data: CellData): void {
  cell.className = data[0]
  const lines: HTMLElement[] = []
  for (let i = 1; i < data.length; i += 2) {
    const line = document.createElement(i === 1 ? "span" : "small")
    line.textContent = data[i]
    line.className = data[i + 1]
    lines.push(line)
  }
  cell.replaceChildren(...lines)
}

function matrix(root: HTMLElement): void {
  const data: MatrixData = JSON.parse(root.querySelector("script")!.textContent!)
  const controls = root.querySelector<HTMLElement>(".controls")!
  const table = root.querySelector("table")!
  const body = table.tBodies[0]
  const status = controls.querySelector<HTMLElement>("[role=status]")!
  const heads = all<HTMLElement>(table.tHead!, "th")
  const original = Array.from(body.rows)
  const rows: Row[] = original
    .filter((element) => element.dataset.row !== undefined)
    .map((element) => ({ index: Number(element.dataset.row), element, cells: all<HTMLTableCellElement>(element, "td"), drawn: "0" }))
  const field = (name: string) => controls.querySelector<HTMLInputElement | HTMLSelectElement>(`[name=${name}]`)
  const boxes = (name: string) => all<HTMLInputElement>(controls, `[name=${name}]`)
  const value = (name: string) => field(name)?.value ?? ""
  const checked = (name: string) => (field(name) as HTMLInputElement | null)?.checked ?? false
  const bases = all<HTMLOptionElement>(controls, "[name=base] option").map((o) => o.value)
  const texts = ["base", "show", "order", "m"]
  const names = [...texts, "shown", "all", "t", "s"]
  let columns = data.targets.map(() => true)

  function order(list: Row[], base: Comparison[][]): Row[] {
    const by = value("order")
    const target = by.startsWith("on ") ? data.targets.indexOf(by.slice(3)) : -1
    const size = (row: Row) =>
      target >= 0
        ? (base[row.index][target][0] ?? -Infinity)
        : Math.max(-1, ...base[row.index].map(([size, shown], c) => (columns[c] && shown ? Math.abs(size ?? 0) : -1)))
    if (by === "name") return list.sort((a, b) => (data.rows[a.index].id < data.rows[b.index].id ? -1 : 1))
    if (by !== "") return list.map((row) => [size(row), row] as const).sort((a, b) => b[0] - a[0] || a[1].index - b[1].index).map(([, row]) => row)
    return list
  }

  function draw(): void {
    const choice = Math.max(0, bases.indexOf(value("base")))
    const base = data.bases[choice]
    const show = value("show")
    const words = value("m").toLowerCase().split(/\s+/)
    const suites = new Set(boxes("s").filter((box) => box.checked).map((box) => box.value))
    const hasSuites = boxes("s").length > 0
    columns = boxes("t").map((box) => box.checked)
    heads.forEach((head, c) => (head.hidden = !columns[c]))
    const key = show === "value" ? show : show + choice
    const visible = rows.filter((row) => {
      const { id, suite, rest } = data.rows[row.index]
      const found = words.every((word) => id.toLowerCase().includes(word))
      const has = (!hasSuites || suites.has(suite)) && found && (!rest || checked("all") || value("m") !== "")
      const isVisible = has && (!checked("shown") || base[row.index].some(([, shown], c) => columns[c] && shown))
      row.element.hidden = !isVisible
      return isVisible
    })
    for (const row of visible) {
      row.cells.forEach((cell, c) => (cell.hidden = !columns[c]))
      if (row.drawn === key) continue
      row.drawn = key
      row.cells.forEach((cell, c) => fill(cell, show === "value" ? data.values[row.index][c] : base[row.index][c][show === "difference" ? 3 : 2]))
    }
    const isOrdered = value("order") !== ""
    table.classList.toggle("ordered", isOrdered)
    const list = isOrdered ? order([...rows], base).map((row) => row.element) : original
    // A browser computes the layout of all rows anew if it inserts them, even in the same order.
    if (list.length !== body.rows.length || list.some((row, i) => row !== body.rows[i])) body.replaceChildren(...list)
    let group: HTMLTableRowElement | null = null
    for (const element of isOrdered ? [] : original) {
      if (element.dataset.row === undefined) {
        group = element
        group.hidden = true
      } else if (group && !element.hidden) group.hidden = false
    }
    status.textContent = `${visible.length} of ${rows.length} ${data.nouns[0]}, ${columns.filter(Boolean).length} of ${columns.length} ${data.nouns[1]}`
  }

  /** Writes the choices to the address, without what is as at first. */
  function write(): void {
    const state = stateOf()
    for (const name of names) state.delete(name)
    for (const name of texts) {
      const isFirst = name === "base" ? value(name) === (bases[0] ?? "") : value(name) === ""
      if (!isFirst) state.set(name, value(name))
    }
    for (const name of ["shown", "all"]) if (checked(name)) state.set(name, "1")
    for (const name of ["t", "s"]) {
      if (!boxes(name).every((box) => box.checked)) for (const box of boxes(name)) if (box.checked) state.append(name, box.value)
    }
    keep(state)
  }

  /** Reads the choices from the address. It returns false if the address has none of them. */
  function read(): boolean {
    const state = stateOf()
    for (const name of texts) {
      const input = field(name)
      if (!input) continue
      input.value = state.get(name) ?? (name === "base" ? bases[0] : "")
      if (input instanceof HTMLSelectElement && input.selectedIndex < 0) input.selectedIndex = 0
    }
    for (const name of ["shown", "all"]) {
      const box = field(name) as HTMLInputElement | null
      if (box) box.checked = state.has(name)
    }
    for (const name of ["t", "s"]) {
      const chosen = state.getAll(name)
      for (const box of boxes(name)) box.checked = chosen.length === 0 || chosen.includes(box.value)
    }
    return names.some((name) => state.has(name))
  }

  controls.hidden = false
  controls.addEventListener("input", () => {
    draw()
    write()
    restore()
  })
  addEventListener("hashchange", () => {
    if (!hasState()) return
    read()
    draw()
  })
  if (read()) root.scrollIntoView()
  draw()
}

type Scale = [unit: number, name: string, from: number]
type Cell = string | number | boolean

interface AxisData {
  log: boolean
  low: number
  high: number
}
interface LaneData {
  name: string
  /** The classes of its line. */
  look: string
  base: boolean
  top: number
  median: number | null
  low: number | null
  high: number | null
  orders: number[]
  values: number[]
  hollow: number[]
  /** The hollow ones as a set, made of the list. */
  rings: Set<number>
  /** The indices of the notes of the samples. One index is for all of them. */
  notes?: number[]
  /** The number of all values, and their quantiles at even distances from the least to the largest one, if some values are not in the page. */
  total?: number
  quantiles?: number[]
}
interface SampleData {
  name: string
  unit: string
  scales: Scale[]
  times: number
  axis: AxisData
  notes?: string[]
  lanes: LaneData[]
}

/** The lines of a panel. */
interface LineData {
  name: string
  axis: string
  across: string
  unit: string
  placeScales: Scale[]
  scales: Scale[]
  x: AxisData
  y: AxisData
  top: number
  bottom: number
  lines: { name: string; places: number[]; values: number[] }[]
}
/** The estimates of a figure with lanes. */
interface MarksData {
  name: string
  unit: string
  log: boolean
  rows: string[]
  marks: { row: number; group: string; value: number; low: number | null; high: number | null; x: number; y: number }[]
}
interface CourseData {
  name: string
  unit: string
  values: number[]
}
interface BarsData {
  unit: string
  bars: { name: string; pieces: [name: string, value: number][] }[]
}

/** A place of a drawing with its words. */
interface Point {
  x: number
  y: number
  text: () => string
}

/** A figure for pgfplots: its axes and their names, and series of places. A place may have the distances to the ends of its horizontal interval. */
interface Picture {
  title: string
  x: string
  y: string
  options: string[]
  series: { name: string; kind: string; points: number[][] }[]
}

/** A view of a figure. All but the nodes is made when it is needed. */
interface View {
  nodes: Node[]
  height: number
  /** What is drawn, in words. */
  note: string
  legend: LaneData[]
  points: () => Point[][]
  table: () => Cell[][]
  picture: () => Picture
}

// The sizes of a figure: see lanes.go.
const left = 8
const right = 312
const depth = 18

/** The namespace of the drawings of the page. */
const drawing = document.querySelector("svg")?.namespaceURI ?? null

function shape(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(drawing, name) as SVGElement
  for (const key in attributes) element.setAttribute(key, String(attributes[key]))
  element.textContent = text
  return element
}

const coordinate = (value: number) => String(Math.round(value * 10) / 10)

function button(bar: HTMLElement, text: string, label: string, press: (b: HTMLButtonElement) => void): HTMLButtonElement {
  const b = document.createElement("button")
  b.type = "button"
  b.textContent = text
  b.setAttribute("aria-label", label)
  b.addEventListener("click", () => press(b))
  bar.append(b)
  return b
}

function save(name: string, type: string, text: string): void {
  const link = document.createElement("a")
  link.href = `data:${type};charset=utf-8,${encodeURIComponent(text)}`
  link.download = name.replace(/[^\w.-]+/g, "-")
  link.click()
}

/** The heading of a figure, or of its section. */
function headingOf(element: Element): string {
  const heading = element.closest("figure")!.querySelector("figcaption b") ?? element.closest("section")?.querySelector("h2, h3, h4, h5, h6")
  const panel = element.previousElementSibling?.matches(".panel") ? element.previousElementSibling.textContent : ""
  return [heading?.textContent, panel].filter(Boolean).join("/")
}

/** The name of a figure in the address and in files: the section, then the heading. */
const nameOf = (element: Element) => [element.closest("section[id]")?.id, headingOf(element)].filter(Boolean).join("/")

const looks = "fill,stroke,stroke-width,stroke-dasharray,stroke-linecap,stroke-linejoin,opacity,paint-order,vector-effect,font-family,font-size,font-weight,font-variant-numeric,text-anchor".split(",")

/** A copy of a drawing that needs no style sheet. */
function resolved(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement
  const copies = all(copy, "*")
  all(svg, "*").forEach((element, i) => {
    copies[i].removeAttribute("class")
    if (!element.matches("path, rect, circle, text")) return
    const style = getComputedStyle(element)
    for (const look of looks) copies[i].setAttribute(look, style.getPropertyValue(look))
  })
  for (const name of ["class", "tabindex"]) copy.removeAttribute(name)
  return copy
}

/** A drawing as a file: with a background, its caption and its legend. */
function framed(element: Element, copy: SVGElement, width: number, height: number): string {
  const style = getComputedStyle(document.body)
  const look = { "font-family": style.fontFamily, "font-size": 11, fill: style.color }
  const keys = all<HTMLElement>(element.closest("figure")!, ".legend li")
  const total = height + 20 + 15 * keys.length
  copy.setAttribute("viewBox", `0 -18 ${width} ${total}`)
  copy.setAttribute("width", String(width * 2))
  copy.setAttribute("height", String(total * 2))
  const title = shape("text", { ...look, x: left, y: -6, "font-weight": 700 }, headingOf(element).replace("/", ", "))
  copy.prepend(shape("rect", { x: 0, y: -18, width, height: total, fill: style.backgroundColor }), title)
  keys.forEach((key, i) => {
    const drawn = key.querySelector("svg")
    const mark = drawn ? resolved(drawn) : shape("rect", { fill: getComputedStyle(key.querySelector(".key")!).backgroundColor })
    const place = { x: left, y: height + 15 * i, width: drawn ? 24 : 12, height: 12 }
    for (const [name, value] of Object.entries(place)) mark.setAttribute(name, String(value))
    copy.append(mark, shape("text", { ...look, x: left + 30, y: place.y + 10 }, key.textContent!))
  })
  return new XMLSerializer().serializeToString(copy)
}

function drawingOf(svg: SVGSVGElement): string {
  const { width, height } = svg.viewBox.baseVal
  return framed(svg, resolved(svg), width, height)
}

// The sizes of a drawing of stacked bars.
const barsWidth = 560
const barLeft = 190
const barRight = 470
const barStep = 18

/** The bars below each other, with their names and numbers. */
function drawingOfBars(figure: HTMLElement): string {
  const copy = shape("svg", {})
  const style = getComputedStyle(document.body)
  const look = { "font-family": style.fontFamily, "font-size": 11, fill: style.color }
  const items = all<HTMLElement>(figure, "ol > li")
  items.forEach((item, i) => {
    const bar = resolved(item.querySelector<SVGSVGElement>(".bar")!)
    const place = { x: barLeft, y: i * barStep, width: barRight - barLeft, height: barStep - 4 }
    for (const [name, value] of Object.entries(place)) bar.setAttribute(name, String(value))
    const text = (selector: string, attributes: object) => shape("text", { ...look, ...attributes, y: i * barStep + 11 }, item.querySelector(selector)!.textContent!)
    copy.append(text(".name", { x: left }), bar, text(".total", { x: barsWidth - left, "text-anchor": "end" }))
  })
  return framed(figure, copy, barsWidth, items.length * barStep + 6)
}

const field = (cell: Cell) => (typeof cell === "string" ? `"${cell.replace(/"/g, '""')}"` : String(cell))
const csv = (rows: Cell[][]) => rows.map((row, i) => row.map((cell) => (i === 0 ? String(cell) : field(cell))).join(",") + "\n").join("")

/** Characters with a meaning in TeX, and those that its usual fonts lack. */
const texWords: Record<string, string> = {
  "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", $: "\\$", "&": "\\&", "#": "\\#", "%": "\\%", _: "\\_", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "[": "{[}", "]": "{]}",
  "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", '"': "\\textquotedbl{}", "`": "\\textasciigrave{}", "-": "{-}", "×": "$\\times$", "·": "$\\cdot$", "µ": "\\textmu{}", "’": "'", "…": "\\dots{}", "−": "$-$",
}
const tex = (text: string) => Array.from(text.replace(/\s+/g, " "), (c) => texWords[c] ?? (c >= " " && c <= "ÿ" ? c : "?")).join("")

/** The largest number of places in a series of a picture. TeX draws more of them slowly. */
const mostPlaces = 500

/** Places at even distances, with the last, the least and the largest one. */
function thin(points: number[][]): number[][] {
  if (points.length <= mostPlaces) return points
  const step = Math.ceil(points.length / mostPlaces)
  const kept = new Set([points[points.length - 1]])
  for (const i of [0, 1]) kept.add(points.reduce((a, b) => (b[i] < a[i] ? b : a))).add(points.reduce((a, b) => (b[i] > a[i] ? b : a)))
  return points.filter((point, i) => i % step === 0 || kept.has(point))
}

function pgfplots({ title, x, y, options, series }: Picture): string {
  const axis = [`title={${tex(title)}}`, "legend pos=outer north east", "scaled ticks=false", `xlabel={${tex(x)}}`, `ylabel={${tex(y)}}`, ...options]
  const plots = series.map(({ name, kind, points }) => {
    const shown = thin(points)
    const remark = shown.length < points.length ? ` % ${shown.length} of ${points.length} places` : ""
    return `\\addplot+[${kind}] coordinates {${remark}\n${shown.map(([x, y, more, less]) => `(${x},${y})` + (more === undefined ? "" : ` += (${more},0) -= (${less},0)`)).join("\n")}\n};\n\\addlegendentry{${tex(name)}}\n`
  })
  return `% \\usepackage{pgfplots} \\pgfplotsset{compat=1.18}; values are in base units\n\\begin{tikzpicture}\n\\begin{axis}[${axis.join(", ")}]\n${plots.join("")}\\end{axis}\n\\end{tikzpicture}\n`
}

/** The scale of the shortest number of at least one. */
function scaleFor(value: number, scales: Scale[]): Scale {
  const one = value === 0 && scales.find(([unit, , from]) => unit === 1 && from === 0)
  return one || scales.reduce((best, scale) => (Math.abs(Number((value / scale[0]).toPrecision(3))) >= Math.max(1, scale[2]) ? scale : best))
}

function spell(value: number, [unit, name]: Scale, digits = 4): string {
  return `${Number((value / unit).toPrecision(digits))}${name.startsWith("/") ? "" : " "}${name}`.trim()
}

const labelled = (name: string, unit: string) => (unit === "" ? name : `${name} (${unit})`)

/** An axis over values, as in axis.go: with a little room, and from zero on if it begins near zero. */
function axisOver(values: number[], log: boolean): AxisData {
  let low = Infinity
  let high = -Infinity
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)]
  if (log) [low, high] = [Math.log10(low), Math.log10(high)]
  else if (low > 0 && low < 0.3 * high) low = 0
  const room = 0.04 * (high - low) || 0.1 * Math.abs(high) || 1
  return { log, low: low === 0 && !log ? 0 : low - room, high: high + room }
}

const placer = ({ log, low, high }: AxisData, from: number, to: number) => (value: number) => {
  const share = ((log ? Math.log10(Math.max(value, Number.MIN_VALUE)) : value) - low) / (high - low)
  return from + (to - from) * Math.min(1, Math.max(0, share))
}

const mostTicks = 6

/** The labelled values of an axis: multiples of 1, 2 or 5 times a power of ten, or powers of ten. A scale that is no power of ten is for all of them. */
function ticks({ log, low, high }: AxisData, scales: Scale[]): [number, string][] {
  if (log) {
    const top = scaleFor(10 ** high, scales)
    const power = Math.log10(top[0])
    const isBinary = Math.abs(power - Math.round(power)) > 1e-9
    const shift = isBinary ? power : 0
    const last = Math.ceil(high - shift)
    let first = Math.floor(low - shift)
    const stride = Math.max(1, Math.floor((last - first + mostTicks - 2) / (mostTicks - 1)))
    first -= ((first % stride) + stride) % stride
    for (const mantissas of [[1, 2, 5], [1, 3], [1]]) {
      const values: number[] = []
      for (let e = first; e <= last; e += stride) values.push(...mantissas.map((m) => m * 10 ** e * 10 ** shift))
      const inside = values.filter((v) => low <= Math.log10(v) && Math.log10(v) <= high)
      if (inside.length <= mostTicks || mantissas.length === 1) return inside.map((v) => [v, spell(v, isBinary ? top : scaleFor(v, scales), 3)])
    }
  }
  const scale = scaleFor(Math.max(Math.abs(low), Math.abs(high)), scales)
  const [start, end] = [low / scale[0], high / scale[0]]
  for (const m of [1, 2, 5, 10]) {
    const step = m * 10 ** Math.floor(Math.log10((end - start) / mostTicks))
    const [first, last] = [Math.ceil(start / step), Math.floor(end / step)]
    if (last - first >= mostTicks) continue
    return Array.from({ length: last - first + 1 }, (_, i) => [(first + i) * step * scale[0], first + i === 0 ? "0" : spell((first + i) * step, [1, scale[1], 0], 6)])
  }
  return []
}

/** The width of a digit of a label. */
const digit = 5.8

/** The lines and labels of a horizontal axis at a height. A label that would run into the one before is left out. */
function across(labels: [number, string][], place: (value: number) => number, from: number, height: number): SVGElement[] {
  const nodes: SVGElement[] = []
  let end = -Infinity
  for (const [value, label] of labels) {
    const half = (label.length * digit) / 2
    const middle = Math.max(from + half, Math.min(right - half, place(value)))
    if (middle - half < end + digit) continue
    end = middle + half
    nodes.push(shape("path", { class: "grid", d: `M${coordinate(place(value))} 0V${height}` }), shape("text", { class: "tick", x: coordinate(middle), y: height + 15, "text-anchor": "middle" }, label))
  }
  return nodes
}

const axisLine = (from: number, height: number) => shape("path", { class: "axis", d: `M${from} ${height}H${right}` })

// The sizes of a panel, beside a standing axis.
const panelLeft = 46
const panelTop = 8
const panelBottom = 168
const panelHeight = panelBottom + 34

/** The standing axis of a panel, and the names of the axes. */
function panel(labels: [number, string][], place: (value: number) => number, name: string): SVGElement[] {
  const lines = labels.flatMap(([value, label]) => {
    const y = coordinate(place(value))
    return [shape("path", { class: "grid", d: `M${panelLeft} ${y}H${right}` }), shape("text", { class: "tick", x: 42, y, dy: 3.5, "text-anchor": "end" }, label)]
  })
  return [...lines, axisLine(panelLeft, panelBottom), shape("text", { class: "tick", x: right, y: panelHeight - 5, "text-anchor": "end" }, name)]
}

/** The sorted places of the values of a lane. */
const sorted = (lane: LaneData) => lane.values.map((_, i) => i).sort((a, b) => lane.values[a] - lane.values[b])

/** The deciles of a lane, by interpolation between its sorted values (definition 7 of Hyndman and Fan, 1996). A lane of few values has none. */
function deciles(lane: LaneData): number[] {
  const { quantiles } = lane
  if (quantiles) return Array.from({ length: 9 }, (_, d) => quantiles[((d + 1) * (quantiles.length - 1)) / 10])
  const values = [...lane.values].sort((a, b) => a - b)
  if (values.length < 10) return []
  return Array.from({ length: 9 }, (_, d) => {
    const position = ((d + 1) / 10) * (values.length - 1)
    const i = Math.floor(position)
    return values[i] + (position - i) * (values[i + 1] - values[i])
  })
}

/** The block of a sample, its value, its conditions and its disturbances. */
function described(data: SampleData, lane: LaneData, i: number): string {
  const note = noteOf(data, lane, i)
  return `block ${lane.orders[i] + 1}, ${spell(lane.values[i], scaleFor(lane.median ?? lane.values[i], data.scales))}${note && ", " + note}`
}

function noteOf({ notes }: SampleData, lane: LaneData, i: number): string {
  const index = lane.notes?.[lane.notes.length === 1 ? 0 : i]
  return index === undefined || index < 0 ? (lane.rings.has(i) ? "disturbed" : "") : notes![index]
}

/** All samples in the order of time, in a lane for each target. The page has this drawing with the axis that suits it. */
function inOrder(data: SampleData, axis: AxisData, original: Node[]): View {
  const place = placer(axis, left, right)
  const height = (lane: LaneData, i: number) => lane.top + (depth * (lane.orders[i] + 0.5)) / data.times
  const redraw = () => {
    const texts = original.filter((node) => node instanceof SVGElement && node.matches(".lane, .value")).map((node) => node.cloneNode(true))
    const bottom = Number((original.find((node) => node instanceof SVGElement && node.matches(".axis")) as SVGElement).getAttribute("d")!.match(/ ([\d.]+)H/)![1])
    const lanes = data.lanes.flatMap((lane) => {
      const nodes: SVGElement[] = []
      const x = (value: number) => coordinate(place(value))
      if (lane.low !== null && lane.high !== null) nodes.push(shape("rect", { class: "band", x: x(lane.low), y: lane.top - 2, width: Math.max(place(lane.high) - place(lane.low), 0.5), height: depth + 4 }))
      if (lane.median !== null) nodes.push(shape("path", { class: "median", d: `M${x(lane.median)} ${lane.top - 3}V${lane.top + depth + 3}` }))
      nodes.push(shape("path", { class: "dots", d: lane.values.map((value, i) => (lane.rings.has(i) ? "" : `M${x(value)} ${coordinate(height(lane, i))}h0`)).join("") }))
      for (const i of lane.hollow) nodes.push(shape("circle", { class: "ring", cx: x(lane.values[i]), cy: coordinate(height(lane, i)), r: 2.2 }))
      return nodes
    })
    return [...across(ticks(axis, data.scales), place, left, bottom), ...texts, ...lanes, axisLine(left, bottom)]
  }
  return {
    nodes: axis === data.axis ? original : redraw(),
    height: 0,
    note: "",
    legend: [],
    points: () => data.lanes.map((lane) => lane.values.map((value, i) => ({ x: place(value), y: height(lane, i), text: () => `${lane.name}: ${described(data, lane, i)}` }))),
    table: () => [
      ["target", "order", "value", "unit", "disturbed", "note"],
      ...data.lanes.flatMap((lane) => lane.values.map((value, i) => [lane.name, lane.orders[i], value, data.unit, lane.rings.has(i), noteOf(data, lane, i)])),
    ],
    picture: () => ({
      title: data.name, x: "block", y: labelled(data.name, data.unit), options: axis.log ? ["ymode=log"] : [],
      series: data.lanes.map((lane) => ({ name: lane.name, kind: "only marks, mark size=1pt", points: lane.values.map((value, i) => [lane.orders[i] + 1, value]) })),
    }),
  }
}

/** The empirical distribution function: the share of the values of each target up to a value. A lane that has not all of its values in the page has its quantiles instead. */
function distribution(data: SampleData, axis: AxisData): View {
  const place = placer(axis, panelLeft, right)
  const height = placer({ log: false, low: 0, high: 1 }, panelBottom, panelTop)
  const lanes = data.lanes.filter((lane) => lane.values.length > 0)
  const steps = lanes.map((lane): { value: number; share: number; text: () => string }[] => {
    const { quantiles } = lane
    const scale = scaleFor(lane.median ?? 0, data.scales)
    if (quantiles) {
      return quantiles.map((value, i) => {
        const share = i / (quantiles.length - 1)
        return { value, share, text: () => `${lane.name}: ${Math.round(share * 100)} % of ${lane.total} values are at most ${spell(value, scale)}` }
      })
    }
    const order = sorted(lane)
    const ranks = order.map((_, i) => i + 1)
    for (let i = order.length - 2; i >= 0; i--) if (lane.values[order[i]] === lane.values[order[i + 1]]) ranks[i] = ranks[i + 1]
    return order.map((index, i) => ({
      value: lane.values[index], share: ranks[i] / order.length, text: () => `${lane.name}: ${ranks[i]} of ${order.length} values are at most ${spell(lane.values[index], scale)}; ${described(data, lane, index)}`,
    }))
  })
  const curves = steps.map((list, l) => {
    const path = list.map(({ value, share }, i) => (lanes[l].quantiles ? `${i ? "L" : "M"}${coordinate(place(value))} ${coordinate(height(share))}` : `H${coordinate(place(value))}V${coordinate(height(share))}`)).join("")
    return shape("path", { class: "curve " + lanes[l].look, d: (lanes[l].quantiles ? path : `M${panelLeft} ${panelBottom}${path}`) + "H" + right })
  })
  const shares: [number, string][] = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, share * 100 + " %"])
  const count = (lanes.find((lane) => lane.quantiles)?.quantiles?.length ?? 1) - 1
  return {
    nodes: [...across(ticks(axis, data.scales), place, panelLeft, panelBottom), ...panel(shares, height, data.name), ...curves],
    height: panelHeight,
    note: "ECDF: the share of the values of each target up to a value." + (count > 0 ? ` Lines with points left out are drawn through ${count + 1} quantiles of all values.` : ""),
    legend: lanes,
    points: () => steps.map((list) => list.map(({ value, share, text }) => ({ x: place(value), y: height(share), text }))),
    table: () => [["target", "value", "unit", "share"], ...lanes.flatMap((lane, l) => steps[l].map(({ value, share }) => [lane.name, value, data.unit, share]))],
    picture: () => ({
      title: data.name, x: labelled(data.name, data.unit), y: "share of the values", options: axis.log ? ["xmode=log"] : [],
      series: lanes.map((lane, l) => ({ name: lane.name, kind: lane.quantiles ? "no marks" : "const plot, no marks", points: steps[l].map(({ value, share }) => [value, share]) })),
    }),
  }
}

/** The shift function: the differences of the deciles of each target to those of a base (K. Doksum, 1974). It describes the samples, and has no test. */
function shift(data: SampleData, base: LaneData): View {
  const own = deciles(base)
  const lanes = own.length === 0 ? [] : data.lanes.filter((lane) => lane !== base && deciles(lane).length > 0)
  const few = data.lanes.filter((lane) => deciles(lane).length === 0).map((lane) => lane.name)
  const series = lanes.map((lane) => deciles(lane).map((value, d) => value - own[d]))
  const axis = axisOver([0, ...series.flat()], false)
  const height = placer(axis, panelBottom, panelTop)
  const place = placer({ log: false, low: 0, high: 10 }, panelLeft, right)
  const curves = series.flatMap((list, l) => {
    const points = list.map((value, d) => `${coordinate(place(d + 1))} ${coordinate(height(value))}`)
    return [shape("path", { class: "curve " + lanes[l].look, d: "M" + points.join("L") }), shape("path", { class: "points " + lanes[l].look, d: points.map((point) => `M${point}h0`).join("") })]
  })
  const labels: [number, string][] = [1, 3, 5, 7, 9].map((d) => [d, d * 10 + " %"])
  const zero = shape("path", { class: "one", d: `M${panelLeft} ${coordinate(height(0))}H${right}` })
  const words = (l: number, d: number) => {
    const text = (value: number) => spell(value, scaleFor(value, data.scales))
    const value = series[l][d]
    return `${lanes[l].name}: the ${d + 1}0 % decile is ${text(own[d] + value)}, ${value === 0 ? "equal to" : `${text(Math.abs(value))} ${value > 0 ? "more than" : "less than"}`} on ${base.name}`
  }
  return {
    nodes: [...across(labels, place, panelLeft, panelBottom), ...panel(ticks(axis, data.scales), height, `decile, minus the decile on ${base.name}`), zero, ...curves],
    height: panelHeight,
    note: `Shift function: the deciles of each target minus the deciles of ${base.name}. It describes these samples, without a test.` + (few.length > 0 ? ` Fewer than ten values: ${few.join(", ")}.` : ""),
    legend: lanes,
    points: () => series.map((list, l) => list.map((value, d) => ({ x: place(d + 1), y: height(value), text: () => words(l, d) }))),
    table: () => [
      ["target", "base", "decile", "value", "base value", "difference", "unit"],
      ...lanes.flatMap((lane, l) => series[l].map((value, d) => [lane.name, base.name, (d + 1) * 10, deciles(lane)[d], own[d], value, data.unit])),
    ],
    picture: () => ({
      title: data.name, x: "decile (%)", y: labelled(`difference to ${base.name}`, data.unit), options: ["xtick={10,30,50,70,90}"],
      series: lanes.map((lane, l) => ({ name: lane.name, kind: "mark size=1pt", points: series[l].map((value, d) => [(d + 1) * 10, value]) })),
    }),
  }
}

/** The read-out of a drawing by the pointer and by the keyboard. The function returns what starts it anew for other points. */
function readOut(svg: SVGSVGElement, status: HTMLElement): (make: () => Point[][]) => void {
  const cursor = shape("circle", { class: "cursor", r: 5, visibility: "hidden" })
  let make: () => Point[][] = () => []
  let made: Point[][] | null = null
  let current: Point | undefined
  const lists = () => (made ??= make().filter((list) => list.length > 0))

  function show(point: Point | undefined): void {
    if (!point) return
    current = point
    cursor.setAttribute("cx", coordinate(point.x))
    cursor.setAttribute("cy", coordinate(point.y))
    cursor.setAttribute("visibility", "visible")
    status.textContent = point.text()
  }

  svg.tabIndex = 0
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect()
    const scale = svg.viewBox.baseVal.width / box.width
    const x = (event.clientX - box.left) * scale
    const y = (event.clientY - box.top) * scale
    let best: Point | undefined
    let least = 30 ** 2
    for (const list of lists()) {
      for (const point of list) {
        const distance = (point.x - x) ** 2 + (point.y - y) ** 2
        if (distance < least) [best, least] = [point, distance]
      }
    }
    show(best)
  })
  svg.addEventListener("focus", () => show(current ?? lists()[0]?.[0]))
  svg.addEventListener("keydown", (event) => {
    if (!current || event.altKey || event.ctrlKey || event.metaKey) return
    const l = lists().findIndex((list) => list.includes(current!))
    const list = lists()[l]
    const i = list.indexOf(current)
    const beside = (other: Point[] | undefined) => other?.[Math.min(i, other.length - 1)]
    const targets: Record<string, Point | undefined> = {
      ArrowRight: list[i + 1], ArrowLeft: list[i - 1], Home: list[0], End: list[list.length - 1], ArrowDown: beside(lists()[l + 1]), ArrowUp: beside(lists()[l - 1]),
    }
    if (!(event.key in targets)) return
    event.preventDefault()
    show(targets[event.key])
  })
  return (other) => {
    make = other
    made = null
    current = undefined
    status.textContent = ""
    cursor.setAttribute("visibility", "hidden")
    svg.append(cursor)
  }
}

function choice(bar: HTMLElement, label: string, options: [value: string, text: string][], press: (value: string) => void): HTMLSelectElement {
  const select = document.createElement("select")
  select.setAttribute("aria-label", label)
  for (const [value, text] of options) select.append(new Option(text, value))
  select.addEventListener("input", () => press(select.value))
  bar.append(select)
  return select
}

/** The figures with views by their names in the address. Each one shows the view that the state has. */
const figures = new Map<string, { svg: Element; show: (view: string, base: string | null) => void }>()

/** The view of a figure in the address: its name, the view, and the kind of axis if it is not the one that suits the figure. */
const viewForm = /^(.*)\.((?:order|ecdf|shift)(?:\.(?:log|linear))?)$/

/** Shows what the address has. It returns the first figure in it. */
function restore(): Element | undefined {
  const state = stateOf()
  const views = new Map(state.getAll("p").map((text) => (viewForm.exec(text) ?? ["", "", ""]).slice(1) as [string, string]))
  for (const [name, { show }] of figures) show(views.get(name) ?? "order", state.get("base"))
  return figures.get(Array.from(views.keys()).find((name) => figures.has(name)) ?? "")?.svg
}

/** The views of a figure with samples. */
function samples(svg: SVGSVGElement, data: SampleData, bar: HTMLElement): void {
  for (const lane of data.lanes) lane.rings = new Set(lane.hollow)
  let name = nameOf(svg)
  while (figures.has(name)) name += "-"
  const original = Array.from(svg.childNodes)
  const box = svg.getAttribute("viewBox")!
  const label = svg.getAttribute("aria-label")!
  const caption = svg.closest("figure")!.querySelector(".scale")!
  const values = data.lanes.flatMap((lane) => [...lane.values, ...[lane.median, lane.low, lane.high].filter((value) => value !== null)])
  const hasLog = values.length > 0 && values.every((value) => value > 0)
  const other = hasLog || data.axis.log ? axisOver(values, !data.axis.log) : data.axis
  const note = document.createElement("p")
  note.className = "faint view"
  note.hidden = true
  const status = statusOf(bar)
  const legend = document.createElement("ul")
  legend.className = "legend"
  const read = readOut(svg, status)
  let view: View
  let drawn = ""

  function write(key: string, scale: string): void {
    const state = stateOf()
    const others = state.getAll("p").filter((text) => viewForm.exec(text)?.[1] !== name)
    state.delete("p")
    const own = key + (scale === "" || key === "shift" ? "" : "." + scale)
    for (const text of own === "order" ? others : [...others, `${name}.${own}`]) state.append("p", text)
    keep(state)
    restore()
  }

  const views = choice(bar, `View of ${data.name}`, [["order", "in order"], ["ecdf", "ECDF"], ["shift", "shift function"]], (key) => write(key, drawn.split(".")[1] ?? ""))
  const bases = choice(bar, `Base of the shift function of ${data.name}`, [], (base) => {
    const state = stateOf()
    state.set("base", base)
    keep(state)
    dispatchEvent(new Event("hashchange")) // the matrix has the same base
  })
  const log = button(bar, "log axis", `Log axis of ${data.name}`, () => {
    const isOther = drawn.includes(".")
    write(views.value, isOther ? "" : data.axis.log ? "linear" : "log")
  })

  function show(text: string, chosen: string | null): void {
    const [key, scale] = text.split(".")
    const base = data.lanes.find((lane) => lane.name === chosen) ?? data.lanes.find((lane) => lane.base) ?? data.lanes[0]
    const axis = other !== data.axis && scale === (data.axis.log ? "linear" : "log") ? other : data.axis
    const next = key === "shift" ? `shift ${base.name}` : key + (axis === data.axis ? "" : "." + scale)
    if (next === drawn) return
    const isFirst = drawn === "" && next === "order"
    drawn = next
    view = key === "shift" ? shift(data, base) : key === "ecdf" ? distribution(data, axis) : inOrder(data, axis, original)
    views.value = key
    if (key === "shift" && bases.length === 0) for (const lane of data.lanes) bases.append(new Option(`minus ${lane.name}`, lane.name))
    bases.value = base.name
    bases.hidden = key !== "shift"
    log.hidden = key === "shift" || other === data.axis
    log.setAttribute("aria-pressed", String(axis.log))
    if (isFirst) {
      read(view.points)
      return
    }
    svg.setAttribute("viewBox", view.height === 0 ? box : `0 0 320 ${view.height}`)
    svg.setAttribute("aria-label", view.note === "" ? label : `${data.name}; ${view.note}`)
    svg.replaceChildren(...view.nodes)
    caption.textContent = key !== "shift" && axis.log ? ", log axis" : ""
    note.textContent = view.note
    note.hidden = view.note === ""
    legend.replaceChildren(...view.legend.map((lane) => {
      const item = document.createElement("li")
      const line = shape("svg", { class: "stroke", "aria-hidden": "true", viewBox: "0 0 26 10" })
      line.append(shape("path", { class: "curve " + lane.look, d: "M1 5H25" }))
      item.append(line, lane.name)
      return item
    }))
    legend.hidden = view.legend.length === 0
    read(view.points)
  }

  downloads(svg, bar, data.name, () => view.table(), () => view.picture())
  svg.after(legend, note)
  legend.hidden = true
  figures.set(name, { svg, show })
}

/** The buttons for the values of a figure: as a table, and for a paper. */
function downloads(element: Element, bar: HTMLElement, name: string, rows: () => Cell[][], picture: () => Picture): void {
  button(bar, "CSV", `Download ${name} as CSV`, () => save(nameOf(element) + ".csv", "text/csv", csv(rows())))
  button(bar, "TeX", `Download ${name} as TeX`, () => save(nameOf(element) + ".tex", "application/x-tex", pgfplots(picture())))
}

function statusOf(bar: HTMLElement): HTMLElement {
  const status = document.createElement("p")
  status.className = "faint read"
  status.setAttribute("role", "status")
  bar.after(status)
  return status
}

/** The read-out and the values of the lines of a panel. */
function lines(svg: SVGSVGElement, data: LineData, bar: HTMLElement): void {
  const place = placer(data.x, panelLeft, right)
  const height = placer(data.y, data.bottom, data.top)
  const at = (value: number) => (data.across === "" ? `${data.axis} ${value}` : spell(value, scaleFor(data.x.high, data.placeScales)))
  readOut(svg, statusOf(bar))(() =>
    data.lines.map(({ name, places, values }) =>
      places.map((x, i) => ({ x: place(x), y: height(values[i]), text: () => `${name}: ${at(x)}, ${spell(values[i], scaleFor(values[i], data.scales))}` })),
    ),
  )
  downloads(svg, bar, headingOf(svg),
    () => [["line", "place", "place_unit", "value", "unit"], ...data.lines.flatMap(({ name, places, values }) => places.map((x, i) => [name, x, data.across, values[i], data.unit]))],
    () => ({
      title: headingOf(svg).replace("/", ", "), x: labelled(data.axis, data.across), y: labelled(data.name, data.unit), options: data.y.log ? ["ymode=log"] : [],
      series: data.lines.map(({ name, places, values }) => ({ name, kind: places.length > 24 ? "no marks" : "mark size=1pt", points: places.map((x, i) => [x, values[i]]) })),
    }),
  )
}

/** The names of rows as labels of the vertical axis of a picture. */
const rowLabels = (names: string[]) => ["y dir=reverse", `height=${4 + Math.floor(names.length / 2)}cm`, `ytick={${names.map((_, i) => i)}}`, `yticklabels={${names.map((name) => `{${tex(name)}}`)}}`]

/** The read-out and the values of estimates. Each mark has its words. */
function marks(svg: SVGSVGElement, data: MarksData, bar: HTMLElement): void {
  const words = all(svg, "g > title").map((title) => title.textContent)
  readOut(svg, statusOf(bar))(() => data.rows.map((name, row) => data.marks.flatMap((mark, i) => (mark.row === row ? [{ x: mark.x, y: mark.y, text: () => `${name}: ${words[i]}` }] : []))))
  downloads(svg, bar, data.name,
    () => [["row", "group", "value", "low", "high", "unit"], ...data.marks.map(({ row, group, value, low, high }) => [data.rows[row], group, value, low ?? "", high ?? "", data.unit])],
    () => ({
      title: data.name, x: labelled(data.name, data.unit), y: "", options: [...rowLabels(data.rows), ...(data.log ? ["xmode=log"] : [])],
      series: Array.from(new Set(data.marks.map(({ group }) => group)), (group) => ({
        name: group, kind: "only marks, mark size=1pt, error bars/.cd, x dir=both, x explicit",
        points: data.marks.filter((mark) => mark.group === group).map(({ row, value, low, high }) => (low === null || high === null ? [value, row] : [value, row, high - value, value - low])),
      })),
    }),
  )
}

/** The read-out and the values of a course. Each dot has its words. */
function course(svg: SVGSVGElement, data: CourseData, bar: HTMLElement): void {
  const dots = all<SVGCircleElement>(svg, ".dot")
  const words = dots.map((dot) => dot.textContent!)
  readOut(svg, statusOf(bar))(() => [dots.map((dot, i) => ({ x: dot.cx.baseVal.value, y: dot.cy.baseVal.value, text: () => words[i] }))])
  downloads(svg, bar, data.name,
    () => [["place", "value", "unit", "note"], ...data.values.map((value, i) => [i + 1, value, data.unit, words[i]])],
    () => ({
      title: data.name, x: "place in the order of time", y: labelled(data.name, data.unit), options: [],
      series: [{ name: "value", kind: "mark size=1pt", points: data.values.map((value, i) => [i + 1, value]) }],
    }),
  )
}

/** The read-out and the values of stacked bars. */
function bars(figure: HTMLElement): void {
  const data: BarsData = JSON.parse(figure.querySelector(":scope > script")!.textContent!)
  const bar = document.createElement("p")
  bar.className = "tools"
  figure.append(bar)
  const status = statusOf(bar)
  all<SVGSVGElement>(figure, ".bar").forEach((svg, b) => {
    const pieces = all<SVGRectElement>(svg, "rect")
    let current = 0
    const show = (i: number) => {
      if (!pieces[i]) return
      current = i
      status.textContent = `${data.bars[b].name}: ${pieces[i].textContent}`
    }
    svg.tabIndex = 0
    svg.addEventListener("pointermove", (event) => show(pieces.findIndex((piece) => piece === event.target || piece.contains(event.target as Node))))
    svg.addEventListener("focus", () => show(current))
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      show(current + step)
    })
  })
  const name = headingOf(figure)
  downloads(figure, bar, name, () => [["bar", "part", "value", "unit"], ...data.bars.flatMap(({ name, pieces }) => pieces.map(([part, value]) => [name, part, value, data.unit]))], () => {
    const parts = Array.from(new Set(data.bars.flatMap(({ pieces }) => pieces.map(([part]) => part))))
    const sum = (pieces: [string, number][], part: string) => pieces.reduce((total, [name, value]) => (name === part ? total + value : total), 0)
    const options = ["xbar stacked", ...rowLabels(data.bars.map(({ name }) => name))]
    return { title: name, x: labelled("value", data.unit), y: "", options, series: parts.map((part) => ({ name: part, kind: "", points: data.bars.map(({ pieces }, i) => [sum(pieces, part), i]) })) }
  })
  button(bar, "SVG", `Download ${name} as SVG`, () => save(nameOf(figure) + ".svg", "image/svg+xml", drawingOfBars(figure)))
}

/** The controls of a drawing with axes. */
function figure(svg: SVGSVGElement): void {
  const bar = document.createElement("p")
  bar.className = "tools"
  const scroll = svg.closest(".scroll")
  ;(scroll ?? svg).after(bar)
  const script = svg.parentElement!.querySelector(":scope > script")
  const data = script ? JSON.parse(script.textContent!) : {}
  if (data.lanes) samples(svg, data, bar)
  else if (data.lines) lines(svg, data, bar)
  else if (data.marks) marks(svg, data, bar)
  else if (data.values) course(svg, data, bar)
  button(bar, "SVG", `Download ${headingOf(svg)} as SVG`, () => save(nameOf(svg) + ".svg", "image/svg+xml", drawingOf(svg)))
}

all<HTMLElement>(document, ".matrix").forEach(matrix)
all<SVGSVGElement>(document, "figure svg[role=img]:not(.bar)").forEach(figure)
all<HTMLElement>(document, ".stacks").forEach(bars)
addEventListener("hashchange", () => hasState() && restore())
const first = restore()
for (let parent = first?.parentElement; parent; parent = parent.parentElement) if (parent instanceof HTMLDetailsElement) parent.open = true
first?.closest("figure")!.scrollIntoView({ behavior: "instant" })
