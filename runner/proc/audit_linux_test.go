package proc

import (
	"os"
	"testing"
	"time"
)

// TestAuditSeesOthers burns CPU time in a process that is not of the run.
func TestAuditSeesOthers(t *testing.T) {
	r := newRig(t, Options{})
	cpu := oneCPU(t)
	a, err := NewAuditor(cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c := r.cmd("burn", "1h")
	c.CPUs = cpu
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	before, err := a.Read()
	if err != nil {
		t.Fatal(err)
	}
	u0, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	u1, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	after, err := a.Read()
	if err != nil {
		t.Fatal(err)
	}
	burnt := u1.CPU - u0.CPU
	blind := after.Since(before, 0)
	if low := burnt.Seconds()/blind.Elapsed.Seconds() - blind.OthersError - blind.GeneratorBusy - blind.Steal; blind.OthersCPU < low {
		t.Errorf("found %.3f CPUs of others, expected at least %.3f: %+v", blind.OthersCPU, low, blind)
	}
	if known := after.Since(before, burnt); known.OthersCPU > blind.OthersCPU-burnt.Seconds()/blind.Elapsed.Seconds()+blind.OthersError {
		t.Errorf("found %.3f CPUs of others although they are ours, %.3f where they are not", known.OthersCPU, blind.OthersCPU)
	}
	if blind.Elapsed < 300*time.Millisecond || blind.GeneratorBusy < 0 || blind.GeneratorBusy > 8 {
		t.Errorf("found %+v", blind)
	}
}

func TestAuditRefusesMissingCPU(t *testing.T) {
	if a, err := NewAuditor(CPUs{4000}); err == nil {
		a.Close()
		t.Error("audits a CPU that does not exist")
	}
}

func BenchmarkAuditRead(b *testing.B) {
	a, err := NewAuditor(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	for b.Loop() {
		if _, err := a.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun starts a process and waits until nothing of it is left.
func BenchmarkRun(b *testing.B) {
	for name, o := range ways {
		b.Run(name, func(b *testing.B) {
			s, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for b.Loop() {
				if _, err := s.Run(b.Context(), Cmd{Name: "it", Argv: []string{"/bin/true"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUsage reads one server of three processes.
func BenchmarkUsage(b *testing.B) {
	for name, o := range ways {
		b.Run(name, func(b *testing.B) {
			s, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			p, err := s.Start(b.Context(), Cmd{Name: "it", Argv: []string{"sh", "-c", "sleep 1000 & sleep 1000 & wait"}, Env: os.Environ()})
			if err != nil {
				b.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			for b.Loop() {
				if _, err := p.Usage(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
