"""Errors in a file say the line, and for the mistakes that people make, the remedy."""

from __future__ import annotations

import pytest

from paddlejob.api.documents import decode, documents
from paddlejob.api.fault import Fault, Severity, format_path, parse_fault
from paddlejob.api.validate import parse
from paddlejob.api.yaml_problem import MOST_SHOWN, full_width, show
from paddlejob.errors import BadFile, InvalidJob

JOB = """\
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: mnist
spec:
  withGloo: 7
  worker:
    replicas: 2
    template:
      spec:
        containers:
          - name: paddle
            image: mnist
            imag: mnist
"""


def errors(text: str) -> list[str]:
    with pytest.raises(InvalidJob) as raised:
        parse(documents(text, "job.yaml")[0], "job.yaml")
    return str(raised.value).splitlines()


def test_every_fault_of_a_field_has_its_line() -> None:
    assert errors(JOB) == [
        "job.yaml:6: spec.withGloo: 7 is more than 2; use 2 or less",
        'job.yaml:14: spec.worker.template.spec.containers[0].imag: unknown field; did you mean "image"?',
    ]


def test_a_missing_field_has_the_line_of_what_should_contain_it() -> None:
    assert errors("---\n# a comment\n" + JOB.replace("name: mnist", "namespace: mine"))[0] == (
        "job.yaml:5: metadata.name is missing; add it"
    )


def test_a_rule_between_fields_has_a_line_too() -> None:
    text = JOB.replace("withGloo: 7", "withGloo: 1").replace("            imag: mnist\n", "").replace("worker:", "ps:")
    assert errors(text) == ["job.yaml:5: spec.worker is missing; every job needs workers, also one with ps or heter"]


def test_objects_of_a_list_know_their_lines() -> None:
    indented = "".join(f"  {line}\n" for line in JOB.splitlines())
    (job,) = documents(f"kind: List\nitems:\n- {indented.lstrip()}", "job.yaml")
    assert job.line(("spec", "withGloo")) == 8


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("\n  worker:", "\nworker:", "worker: unknown field; it belongs in spec; move it there and indent it below"),
        (
            "spec:\n  withGloo: 7\n  worker:",
            "  worker:\n    replicas: 1\nspec:\n  worker:",
            "metadata.worker: unknown field; it belongs in spec; move it there",
        ),
        (
            "  worker:\n    replicas: 2\n",
            "  ps:\n    replicas: 2\n    worker:\n      replicas: 2\n",
            "spec.ps.worker: unknown field; it belongs in spec, beside ps; indent it less",
        ),
        (
            "        containers:",
            "      containers:",
            "containers: unknown field; it belongs in spec.worker.template.spec; move it there",
        ),
        ("            image: mnist\n", "        image: mnist\n", "image: unknown field; it belongs in spec.worker."),
        (
            "  withGloo: 7\n",
            "  sampleSetRef: {name: imagenet, mountPath: /data}\n",
            "spec.sampleSetRef: unknown field; PaddleCloud mounted the data of a SampleSet with it; add a persistent",
        ),
        ("    replicas: 2\n", "    gpu: 2\n", "spec.worker.gpu: unknown field; write nvidia.com/gpu below resources"),
    ],
)
def test_a_misplaced_field_is_reported_with_where_it_belongs(before: str, after: str, message: str) -> None:
    text = JOB.replace("            imag: mnist\n", "").replace(before, after)
    assert any(message in error for error in errors(text)), errors(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: PaddleJob\nspec:\n\tworker: 1\n", "job.yaml:3:1: a tab indents this line; YAML allows only spaces"),
        ("kind：PaddleJob\n", "job.yaml:1:5: the character ： is not YAML punctuation; write `:` and a space"),
        ("a: b\nkind：PaddleJob\nc: d\n", "job.yaml:2:5: the character ： is not YAML punctuation"),
        ('a: ["python"，"train.py"]\n', "job.yaml:1:13: the character ， is not YAML punctuation; write `,`"),
        ("a: [1, 2\nb: c\n", "job.yaml:2:2: invalid YAML: did not find expected ',' or ']'; close the bracket"),
        ("a: 'b\n", "job.yaml:2:1: invalid YAML: found unexpected end of stream; close the quote"),
        ("a: &a [*a]\n", "job.yaml:1:4: an alias refers to what contains it"),
        ("a: " + "9" * 5000, "is not a number; write it in quotes or correct it"),
        ("a: .inf\n", "job.yaml:1:4: .inf is not a number"),
        ("a: !!binary aGk=\n", "job.yaml:1:4: the tag !!binary has no meaning here; remove it"),
        ("[" * 100_000, "has more than 100 levels; check the brackets"),
    ],
)
def test_yaml_that_cannot_be_used_is_reported_with_its_remedy(text: str, message: str) -> None:
    with pytest.raises(BadFile) as raised:
        documents(text, "job.yaml")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_few_lines_that_expand_to_billions_of_values_are_rejected() -> None:
    lines = ["a0: &a0 [1, 2]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(BadFile, match="more than 200000 values"):
        documents("\n".join(lines), "job.yaml")


def test_full_width_punctuation_in_a_key_or_a_value_is_named() -> None:
    text = JOB.replace("  withGloo: 7\n", "").replace("            imag: mnist\n", "")
    assert "the character ： is not YAML punctuation" in errors(text.replace("replicas: 2", "replicas：2: 2"))[0]
    assert (
        "is not a mapping; the character ： is not YAML"
        in errors("".join([*text.splitlines(True)[:4], "spec: worker：\n"]))[0]
    )


@pytest.mark.parametrize("character", "：，“”‘’［］｛｝【】＃－\u3000\xa0")
def test_each_character_of_another_keyboard_is_named(character: str) -> None:
    assert "is not YAML punctuation" in full_width(character)[0]


def test_keys_are_strings_as_on_the_api_server() -> None:
    assert documents("data: {1: a, true: b}\n", "x")[0]["data"] == {"1": "a", "true": "b"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a: b\n# 训练\n".encode("gbk"),
            "job.yaml:2: the file is encoded in GBK, not UTF-8; save it as UTF-8, or convert it with "
            "`iconv -f GB18030 -t UTF-8 job.yaml > utf8.yaml`",
        ),
        ("a: b\n".encode("utf-16"), "job.yaml:1: the file is encoded in UTF-16, not UTF-8"),
        (
            "a: b\n".encode("utf-16-le"),
            "job.yaml:1: the file contains zero bytes, so it is not a text file; save it",
        ),
        (b"\x89PNG\r\n\x1a\n\0\xff\xff", "job.yaml:1: the file is not a text file"),
        (b"a: 1\n\xff\xff", "job.yaml:2: the file is not a text file: it is not encoded in UTF-8"),
        ("名: \0".encode("gb18030"), "job.yaml:1: the file is not a text file: it is not encoded in UTF-8"),
        (b"a: 1\nb: \0", "job.yaml:2: the file contains zero bytes, so it is not a text file"),
    ],
)
def test_a_file_in_another_encoding_is_reported_with_how_to_convert_it(content: bytes, message: str) -> None:
    with pytest.raises(BadFile) as raised:
        decode(content, "job.yaml")
    assert str(raised.value).startswith(message)


def test_a_byte_order_mark_is_not_part_of_the_text_and_a_name_with_spaces_is_quoted() -> None:
    assert decode(b"\xef\xbb\xbfa: 1", "f") == "a: 1"
    with pytest.raises(BadFile, match=r"iconv -f UTF-16 -t UTF-8 'my job\.yaml' > utf8\.yaml`"):
        decode("a: 1".encode("utf-16"), "my job.yaml")


def test_what_was_piped_in_is_converted_in_the_pipe() -> None:
    with pytest.raises(BadFile, match=r"convert it with `iconv -f GB18030 -t UTF-8`$"):
        decode("# 训练\n".encode("gbk"), "standard input")


def test_a_byte_order_mark_is_ignored() -> None:
    assert decode(b"\xef\xbb\xbfa: b", "x") == "a: b"


def test_a_fault_is_written_with_its_path_and_its_file():
    assert format_path(("a", 0, "b-c", "d/e", "f")) == 'a[0].b-c["d/e"].f'
    assert str(Fault((), "x")) == "the document: x"
    assert Fault(("a",), "x").at({}, "f") == "f: a: x"
    assert Fault(("a",), "x").at({}, "") == "a: x"
    (read,) = documents("kind: A\nspec:\n  b: 1\n", "f")
    assert Fault(("spec", "b"), "x").at(read, "f") == "f:3: spec.b: x"
    assert Fault(("spec", "c"), "x").at(read, "f") == "f:2: spec.c: x"
    assert parse_fault("a.b: c: d") == Fault(("a", "b"), "c: d", Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("- a\n", 'a Kubernetes object is a mapping, not a list: ["a"]', 1),
        ("\nabc\n", 'a Kubernetes object is a mapping, not text: "abc"', 2),
        ("true", "a Kubernetes object is a mapping, not true or false: true", 1),
        ("7", "a Kubernetes object is a mapping, not a number: 7", 1),
        ("kind: [A]", 'kind: ["A"] is not a string', 1),
        ("kind: A\napiVersion: 1", "apiVersion: 1 is not a string", 2),
        ("kind: A\nmetadata:", "metadata is empty; indent its fields, such as `name: NAME`", 2),
        ("metadata: x", 'metadata: "x" is not a mapping of fields, such as `name: NAME`', 1),
        ("kind: List\nitems: x", "items is not a list; start each object with `- `", 2),
        ("kind: List\nitems: [{kind: A}, 7]", "a Kubernetes object is a mapping, not a number: 7", 2),
        ("# nothing\n", "is empty; it should contain a PaddleJob (`pdj init` writes one)", 0),
    ],
)
def test_what_is_no_object_says_why_and_where(text: str, problem: str, line: int):
    with pytest.raises(BadFile) as raised:
        documents(text, "f")
    assert (raised.value.problem, raised.value.line) == (problem, line)


def test_a_list_is_read_as_its_objects_and_empty_documents_are_skipped():
    read = documents("---\n---\nkind: List\nitems:\n- kind: A\n- kind: B\n---\nkind: C\n", "f")
    assert [one["kind"] for one in read] == ["A", "B", "C"]
    assert [one.line(("kind",)) for one in read] == [5, 6, 8]


def test_values_are_shown_as_in_a_file_and_shortened():
    assert (show("a"), show(1.5), show(["名"]), show(None)) == ('"a"', "1.5", '["名"]', "null")
    assert len(show("x" * (MOST_SHOWN - 2))) == MOST_SHOWN
    assert show("x" * MOST_SHOWN) == '"' + "x" * (MOST_SHOWN - 4) + "..."
