"""The server of `tensorhash view`: what it gives, and what it refuses. tests/browser has the page."""

import http.client
import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from tensorhash import cli, io
from tensorhash.view._scene import Scene
from tensorhash.view._server import make_server

POINTS = np.random.default_rng(0).normal(size=(2000, 3)) * [50, 30, 5] + [1000, -2000, 30]


@pytest.fixture
def server():
    with make_server(Scene(POINTS, 2.0), "a</script>&.ply") as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def get(server):
    """(status, headers, content) of a request; the token is added unless it is given."""

    def call(path, token=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        mark = "&" if "?" in path else "?"
        connection.request(
            "GET", f"{path}{mark}token={server.token if token is None else token}", headers=headers
        )
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    return call


def test_it_listens_on_the_loopback_address_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/?token={server.token}"
    assert len(server.token) >= 32


def test_the_page_holds_everything_and_runs_only_its_own_script(get, server):
    status, headers, content = get("/")
    page = content.decode()
    assert status == 200 and "{{" not in page
    policy = headers["Content-Security-Policy"]
    nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
    assert policy.startswith("default-src 'none'") and len(nonce) > 16
    assert page.count(f'nonce="{nonce}"') == page.count("<script") + page.count("<style") == 2
    assert "http:" not in page and "https:" not in page
    assert "a&lt;/script&gt;&amp;.ply" in page and page.count("</script>") == 1
    assert get("/")[1]["Content-Security-Policy"] != policy  # a new nonce each time


def test_points_and_voxels_are_those_of_numpy(get):
    low, high = POINTS.min(axis=0), POINTS.max(axis=0)
    center = (low + high) / 2
    _, headers, content = get("/points")
    assert json.loads(headers["X-Facts"]) == {"points": 2000}
    assert np.allclose(np.frombuffer(content, "<f4").reshape(-1, 3), POINTS - center, atol=1e-4)
    for size in (0.5, 7.0):
        _, headers, content = get(f"/voxels?size={size}")
        cells = np.unique(np.floor(POINTS / size), axis=0)
        facts = json.loads(headers["X-Facts"])
        assert facts["voxels"] == len(cells) and facts["milliseconds"] > 0
        got = np.frombuffer(content, "<f4").reshape(-1, 3) + center
        assert np.array_equal(np.unique(np.floor(got / size), axis=0), cells)


@pytest.mark.parametrize("path", ["/", "/points", "/voxels?size=1", "/other"])
def test_without_token_or_with_a_foreign_host_nothing_is_given(get, server, path):
    for token in ("", "x", server.token[:-1], server.token + "x", "%ff"):
        status, headers, content = get(path, token)
        assert status == 403 and b"expected the token" in content
        assert "X-Facts" not in headers
    status, _, content = get(path, Host="evil.example")
    assert status == 403 and b"expected the address" in content


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/other", 404, "expected /, /points or /voxels"),
        ("/voxels", 400, "could not convert"),
        ("/voxels?size=0", 400, "size: expected a number greater than 0, got 0.0"),
        ("/voxels?size=nan", 400, "size: expected a number greater than 0, got nan"),
        ("/voxels?size=1e-30", 400, "int32"),
    ],
)
def test_bad_requests_are_one_sentence(get, path, status, message):
    got, _, content = get(path)
    assert got == status and message in content.decode()


def test_scenes_of_odd_points():
    with pytest.raises(ValueError, match="expected at least one finite point, got none"):
        Scene(np.full((3, 3), np.nan))
    scene = Scene([[1.0, 2.0, 3.0], [np.nan, 0, 0]])
    assert scene.dropped == 1 and scene.facts()["points"] == 1
    facts = scene.facts()
    assert 0 < facts["least"] < facts["size"] < facts["most"]
    assert scene.voxels(facts["size"])[0]["voxels"] == 1


def test_many_points_are_thinned_for_the_page(monkeypatch):
    monkeypatch.setattr("tensorhash.view._scene._MOST_POINTS", 300)
    facts, content = Scene(POINTS).points()
    assert facts["points"] == len(content) // 12 == len(POINTS[::7])
    monkeypatch.setattr("tensorhash.view._scene._MOST_VOXELS", 10)
    with pytest.raises(ValueError, match="at most 10 voxels"):
        Scene(POINTS).voxels(0.1)


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    io.write(tmp_path / "a.ply", POINTS)
    command = [sys.executable, "-m", "tensorhash", "view", str(tmp_path / "a.ply"), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.stdout.readline()
    process.send_signal(2)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in err


def test_bad_arguments_of_the_command(tmp_path, capsys):
    assert cli.main(["view", str(tmp_path / "none.ply")]) == 2
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["view", "a.ply", "--port", "70000"])
    assert "expected a port from 0 to 65535" in capsys.readouterr().err
